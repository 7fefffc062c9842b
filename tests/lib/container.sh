#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
#
# container.sh KIND DIR BIND COMMAND [ARG]...: runs a command as containers run, with
# a root folder, a mount and a pid namespace of its own; it becomes pid 1 in there.
# Ends with it. No image is needed: what the host has is seen through the root.
#
#   copies   root on tmpfs; GlusterFS's modules are copies of the host's at the same
#            path, its libraries are copies at a path that the host does not have
#   overlay  root is an overlay over the host's; modules and libraries are copied up,
#            so that the mapped files' numbers are those of the layer below
#
# DIR is a folder on the host, kept: DIR/modules, DIR/lib (copies), DIR/upper (overlay)
# are what the container has. BIND is seen in there at its own path.
set -euo pipefail

modules=$(dirname "$(dirname "$(glusterfsd --print-xlatordir)")")

# copy_files DIR: once; later ones find what was left there.
copy_files()
{
	[ ! -d "$1/modules" ] || return 0
	mkdir -p "$1/lib" "$1/modules.new"
	cp -a "$modules/." "$1/modules.new/"
	cp -L "$(dirname "$modules")"/libg{lusterfs,frpc,fxdr}.so.0 "$1/lib/"
	mv "$1/modules.new" "$1/modules"
}

root_copies()
{
	local dir=$1 root=$2 top

	copy_files "$dir"
	mount -t tmpfs -o mode=755 container "$root"
	mkdir -p "$root"/{old,proc,tmp,srv/gluster}
	for top in bin dev etc lib lib64 sbin usr var; do
		if [ -L "/$top" ]; then
			cp -P "/$top" "$root/$top"
		else
			mkdir "$root/$top" && mount --rbind "/$top" "$root/$top"
		fi
	done
	mount --bind "$dir/modules" "$root$modules"
	mount --bind "$dir/lib" "$root/srv/gluster"
}

root_overlay()
{
	local dir=$1 root=$2

	mkdir -p "$dir/layers"
	mount -t tmpfs -o mode=755 layers "$dir/layers"
	mkdir -p "$dir/layers"/{upper,work}
	mount -t overlay -o "lowerdir=/,upperdir=$dir/layers/upper,workdir=$dir/layers/work" \
		container "$root"
	mkdir -p "$root/old"
	mount --rbind /dev "$root/dev"
	touch "$root$modules"/*/xlator/*/*.so \
		"$root$(dirname "$modules")"/libg{lusterfs,frpc,fxdr}.so.0
}

inside()
{
	local kind=$1 dir=$2 bind=$3 root=$2/root

	shift 3
	mkdir -p "$root"
	"root_$kind" "$dir" "$root"
	mkdir -p "$root$bind"
	mount --rbind "$bind" "$root$bind"
	mount -t proc proc "$root/proc"
	cd "$root"
	pivot_root . old
	umount -l old
	export LD_LIBRARY_PATH=/srv/gluster
	exec "$@"
}

if [ "$1" = inside ]; then
	shift
	inside "$@"
fi
exec unshare --mount --propagation private --pid --fork --kill-child "$0" inside "$@"
