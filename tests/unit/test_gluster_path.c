/* SPDX-License-Identifier: Apache-2.0 */
/*
 * test_gluster_path.c: paths of gfids from a brick's .glusterfs: directories, files by their
 * attribute (where this file system and these rights have it), and links that are none of a
 * brick's: too deep, in a circle, with slashes, cut.
 */
#include "gluster_path.h"

#include <errno.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/xattr.h>
#include <unistd.h>

#include "tap.h"
#include "text.h"

static char brick[64] = "/tmp/test_gluster_path.XXXXXX";

/* The gfid of that number: 1 is the root. */
static const uint8_t *gfid_of(unsigned int number)
{
	static uint8_t gfid[16];

	memset(gfid, 0, sizeof(gfid));
	gfid[14] = (uint8_t)(number >> 8);
	gfid[15] = (uint8_t)number;
	return gfid;
}

/* What the shell does to the brick. */
static void run(const char *what, const char *below)
{
	char command[256];

	snprintf(command, sizeof(command), "%s %s%s", what, brick, below);
	if (system(command))
		abort();
}

static void entry_of(unsigned int number, char entry[PATH_MAX])
{
	char text[TEXT_GFID];

	text_gfid(text, gfid_of(number));
	snprintf(entry, PATH_MAX, "%s/.glusterfs/00/00/%s", brick, text);
}

static void link_raw(unsigned int number, const char *target)
{
	char entry[PATH_MAX];

	entry_of(number, entry);
	unlink(entry);
	if (symlink(target, entry))
		abort();
}

static void make_dir(unsigned int number, unsigned int parent, const char *name)
{
	char target[PATH_MAX], text[TEXT_GFID];

	snprintf(target, sizeof(target), "../../00/00/%s/%s", text_gfid(text, gfid_of(parent)),
		 name);
	link_raw(number, target);
}

static void path_is(unsigned int number, const char *want, const char *what)
{
	char path[PATH_MAX] = "untouched";
	bool is_dir;
	int ret = gluster_path_find(brick, gfid_of(number), path, sizeof(path), &is_dir);

	is_str(ret ? strerror(-ret) : path, want, "%s", what);
}

static void test_dirs(void)
{
	char path[8];
	bool is_dir = false;

	path_is(1, "/", "the root");
	make_dir(2, 1, "a");
	make_dir(3, 2, "b c\x1b[31m\n");
	path_is(2, "/a", "a directory");
	path_is(3, "/a/b c\x1b[31m\n", "one in it, as it is called");
	is_int(gluster_path_find(brick, gfid_of(2), path, sizeof(path), &is_dir), 0, "it is known");
	ok(is_dir, "as a directory");
	is_int(gluster_path_find(brick, gfid_of(3), path, sizeof(path), &is_dir), -ENAMETOOLONG,
	       "more than there is room for");
	path_is(9, strerror(ENOENT), "one that is not there");
}

static void test_bad_links(void)
{
	unsigned int i;

	for (i = 100; i < 300; i++)
		make_dir(i, i + 1, "deep");
	path_is(100, strerror(ELOOP), "no end");
	make_dir(5, 6, "x");
	make_dir(6, 5, "y");
	path_is(5, strerror(ELOOP), "a circle");
	link_raw(7, "/etc/passwd");
	path_is(7, strerror(ENOENT), "a link to somewhere");
	link_raw(7, "../../00/00/00000000-0000-0000-0000-0000000000");
	path_is(7, strerror(ENOENT), "a gfid that is cut");
	make_dir(7, 1, "a/b");
	path_is(7, strerror(ENAMETOOLONG), "a name with a slash");
	make_dir(7, 1, "");
	path_is(7, strerror(ENOENT), "no name");
	path_is(8, strerror(ENOENT), "nothing");
}

static int name_file(unsigned int number, const char *attribute, const char *value)
{
	char entry[PATH_MAX];

	entry_of(number, entry);
	return setxattr(entry, attribute, value, strlen(value), 0);
}

static void test_files(void)
{
	char entry[PATH_MAX], path[PATH_MAX];
	bool is_dir = true;
	FILE *f;

	entry_of(20, entry);
	f = fopen(entry, "w");
	if (!f)
		abort();
	fclose(f);
	path_is(20, strerror(ENOENT), "a file whose names are not kept");
	if (name_file(20, "trusted.gfid2path.0123456789abcdef",
		      "00000000-0000-0000-0000-000000000002/file \xff")) {
		skip("a file by its attribute", "no trusted attributes here");
		return;
	}
	path_is(20, "/a/file \xff", "a file by its attribute");
	is_int(gluster_path_find(brick, gfid_of(20), path, sizeof(path), &is_dir), 0, "again");
	ok(!is_dir, "it is no directory");
	name_file(20, "trusted.gfid2path.0123456789abcdef", "nonsense");
	path_is(20, strerror(ENOENT), "an attribute that says nothing");
}

int main(void)
{
	if (!mkdtemp(brick))
		abort();
	run("mkdir -p", "/.glusterfs/00/00");
	test_dirs();
	test_bad_links();
	test_files();
	run("rm -r", "");
	return tap_done();
}
