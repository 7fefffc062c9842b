# shellcheck shell=bash
# SPDX-License-Identifier: Apache-2.0
#
# load.sh: the same small mixture of requests for every test: data through fio with a
# fixed seed, and one of nearly every operation that a mount can be asked for. Sourced
# after bed.sh, whose bed_fio it uses.

# load_data MNT JOB [FIO OPTION]...: mixed 4k and 128k, from two threads each, with
# fsync. load_data_prepare lays the files out, apart. The jobs are JOB-4k and JOB-128k.
load_data_prepare()
{
	bed_fio_prepare "$1" "$2-4k" --numjobs=2 --size=2m "${@:3}" &&
		bed_fio_prepare "$1" "$2-128k" --numjobs=2 --size=4m --bs=128k "${@:3}"
}

load_data()
{
	bed_fio "$1" "$2-4k" --rw=randrw --numjobs=2 --size=2m --fsync=64 "${@:3}" &&
		bed_fio "$1" "$2-128k" --rw=randrw --numjobs=2 --size=4m --bs=128k "${@:3}"
}

load_names()
{
	local i

	# small: one readdirp looks at every entry, with several system calls
	mkdir "$1/dir" && touch "$1/dir/a" && ls -l "$1/dir" >/dev/null && rm -r "$1/dir" ||
		return 1
	mkdir "$1/names" && cd "$1/names" || return 1
	# lookups and a rmdir that fail are part of it
	rmdir none none/none 2>/dev/null
	for ((i = 0; i < 6; i++)); do
		echo "$i" >"file$i" || return 1
		mv "file$i" "name$i" && stat "name$i" "none$i"
		ln "name$i" "hard$i" && ln -s "name$i" "soft$i" && rm "hard$i" || return 1
		chmod 600 "name$i" && touch "name$i" && cat "soft$i" || return 1
	done >/dev/null 2>&1
	mknod fifo p
}

load_attributes()
{
	local i

	cd "$1/names" || return 1
	for ((i = 0; i < 6; i++)); do
		setfattr -n user.test -v "value$i" "name$i" || return 1
		getfattr -n user.test "name$i" || return 1
		getfattr -n user.none "name$i" # fails, and is meant to
		setfattr -x user.test "name$i" || return 1
	done >/dev/null 2>&1
	truncate -s 100 name0 && fallocate -l 8192 name1 && sync name1 && df . >/dev/null
}

# load_meta MNT: creates, renames, links, attributes, extended attributes, failures.
load_meta() { (load_names "$1") && (load_attributes "$1"); }
