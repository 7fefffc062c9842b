#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
#
# build-xlator.sh OUTDIR: builds our test xlators (tests/xlator/*.c) as
# OUTDIR/<name>.so, where they are not there and newer. Needs GlusterFS's headers:
# Debian's libglusterfs-dev, with libssl-dev, liburcu-dev and uuid-dev. The defines
# are those of GlusterFS's own build: without them its atomics become locked
# structures, and every offset is another one. Exit 77 where the headers are missing.
set -eu

out=${1:?usage: build-xlator.sh OUTDIR}
here=$(cd "$(dirname "$0")" && pwd)
cc=${CC:-cc}
cppflags=(-D_GNU_SOURCE -D_FILE_OFFSET_BITS=64 -DGF_LINUX_HOST_OS=1
	-DHAVE_ATOMIC_BUILTINS=1 -DSIZEOF_LONG=8 -isystem /usr/include/uuid)
# no -Wundef, -Wshadow, -Wwrite-strings: GlusterFS's macros and structs are not so clean
cflags=(-std=gnu11 -O2 -g -fPIC -Wall -Wextra -Wvla -Wstrict-prototypes
	-Wmissing-prototypes -Wformat=2 -Werror -fno-common)

for header in openssl/sha.h urcu.h uuid/uuid.h glusterfs/xlator.h; do
	if ! echo "#include <$header>" | $cc -E "${cppflags[@]}" -x c - >/dev/null 2>&1; then
		echo "build-xlator: no $header here" \
			"(libglusterfs-dev, libssl-dev, liburcu-dev, uuid-dev)" >&2
		exit 77
	fi
done

mkdir -p "$out"
for src in "$here"/../xlator/*.c; do
	so=$out/$(basename "${src%.c}").so
	if [ "$so" -nt "$src" ] && [ "$so" -nt "$0" ]; then
		continue
	fi
	# never half an object under its name: tests may build side by side
	$cc "${cflags[@]}" "${cppflags[@]}" -shared -o "$so.$$" "$src" -lglusterfs
	mv "$so.$$" "$so"
done
