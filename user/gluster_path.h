/* SPDX-License-Identifier: Apache-2.0 */
/*
 * gluster_path.h: the path of a gfid from what storage/posix keeps on a brick's file system: links
 * of directories below .glusterfs, and the extended attribute that names a file's directory. Reads
 * nothing but that; what it returns is untrusted.
 */
#ifndef BRICKTOP_GLUSTER_PATH_H
#define BRICKTOP_GLUSTER_PATH_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/*
 * From the volume's root, into path. brick: the brick's directory, as this process opens it. 0,
 * -ENOENT (no such gfid, or its names are not kept), -ENAMETOOLONG, -ELOOP, or -errno. May take as
 * long as the file system does: see gluster_resolver.h.
 */
int gluster_path_find(const char *brick, const uint8_t gfid[16], char *path, size_t size,
		      bool *ret_is_dir);

#endif
