// SPDX-License-Identifier: Apache-2.0
/*
 * gluster_names.c: what a graph and its xlators are called in front of people: the volume, the
 * brick's path, and an id for each xlator that is short and unique within its graph. Works on what
 * gluster_build.c read, makes every name harmless, and reads nothing itself.
 */
#include "gluster_walk.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "text.h"

static const char *base_name(const char *type)
{
	const char *slash = strrchr(type, '/');

	return slash && slash[1] ? slash + 1 : type;
}

static bool is_type(const struct gluster_xlator *xl, const char *type)
{
	return strcmp(xl->type, type) == 0;
}

/* name is "VOLUME-something" */
static bool has_prefix(const char *name, const char *volume, size_t volume_len)
{
	return volume_len && strncmp(name, volume, volume_len) == 0 && name[volume_len] == '-';
}

static void set_volume(struct gluster_graph *g, const char *name, size_t len)
{
	char raw[sizeof(g->volume)];

	if (len >= sizeof(raw))
		len = sizeof(raw) - 1;
	memcpy(raw, name, len);
	raw[len] = '\0';
	text_sanitize(g->volume, sizeof(g->volume), raw);
}

/* Number of xlators that this volume's name fits: how well it is witnessed. */
static size_t count_prefixed(const struct gluster_graph *g, const char *volume, size_t len)
{
	size_t n = 0;

	for (size_t i = 0; i < g->n; i++)
		n += has_prefix(g->xl[i].name, volume, len);
	return n;
}

static size_t suffix_start(const char *name, const char *suffix)
{
	size_t len = strlen(name), suffix_len = strlen(suffix);

	return len > suffix_len && !strcmp(name + len - suffix_len, suffix) ? len - suffix_len : 0;
}

/* A shared server is named by its first brick's volume, so the brick's own xlators must bear it
 * out. */
static bool volume_of_brick(struct gluster_graph *g)
{
	size_t len = suffix_start(g->xl[0].name, "-server");

	if (len && (count_prefixed(g, g->xl[0].name, len) > 1 || g->n <= 2)) {
		set_volume(g, g->xl[0].name, len);
		return true;
	}
	for (size_t i = 1; i < g->n; i++) {
		if (!is_type(&g->xl[i], "storage/posix"))
			continue;
		len = suffix_start(g->xl[i].name, "-posix");
		if (len) {
			set_volume(g, g->xl[i].name, len);
			return true;
		}
	}
	return false;
}

/* A client's io-stats is named by the volume alone, where other xlators' names begin with it. */
static bool volume_of_client(struct gluster_graph *g)
{
	for (size_t i = 0; i < g->n; i++) {
		const char *name = g->xl[i].name;

		if (is_type(&g->xl[i], "debug/io-stats") && count_prefixed(g, name, strlen(name))) {
			set_volume(g, name, strlen(name));
			return true;
		}
	}
	return false;
}

/* "perfvol", "/perfvol", "perfvol.rdma-fuse"; a brick's: "perfvol.host.path-with-dashes". */
static bool volume_of_volfile(struct gluster_graph *g, const char *volfile_id)
{
	size_t len;

	while (*volfile_id == '/')
		volfile_id++;
	len = strcspn(volfile_id, ".");
	if (!len || memchr(volfile_id, '/', len))
		return false; /* a path: the daemon was given a file, not a volume */
	set_volume(g, volfile_id, len);
	return true;
}

static void find_brick_path(struct gluster_graph *g, const char *brick_name)
{
	const char *path = brick_name;

	if (!g->is_brick)
		return;
	if (g->n > 1 && g->xl[1].name[0] == '/')
		path = g->xl[1].name;
	text_sanitize(g->brick_path, sizeof(g->brick_path), path);
}

static bool id_is_taken(const struct gluster_graph *g, size_t before, const char *id)
{
	for (size_t i = 0; i < before; i++)
		if (g->xl[i].id && !strcmp(g->xl[i].id, id))
			return true;
	return false;
}

/* The volume's raw name may differ from the sanitized one, but has its length or is cut. */
static const char *short_name(const struct gluster_graph *g, const struct gluster_xlator *xl)
{
	size_t len = strlen(g->volume);

	if (xl->name[0] == '/' || !strcmp(xl->name, g->volume) || is_type(xl, "protocol/server"))
		return base_name(xl->type);
	if (has_prefix(xl->name, g->volume, len) && xl->name[len + 1])
		return xl->name + len + 1;
	return xl->name;
}

static int set_id(struct gluster_graph *g, size_t index)
{
	struct gluster_xlator *xl = &g->xl[index];
	char id[300], plain[256];

	snprintf(plain, sizeof(plain), "%s", short_name(g, xl));
	snprintf(id, sizeof(id), "%s", plain);
	for (unsigned int n = 2; id_is_taken(g, index, id); n++)
		snprintf(id, sizeof(id), "%s#%u", plain, n);
	xl->id = strdup(id);
	return xl->id ? 0 : -ENOMEM;
}

static void sanitize_in_place(char **text)
{
	size_t size = strlen(*text) + 1;
	char *clean = malloc(size);

	if (!clean) {
		**text = '\0'; /* better nameless than an escape sequence on somebody's terminal */
		return;
	}
	text_sanitize(clean, size, *text);
	free(*text);
	*text = clean;
}

int gluster_name_graph(struct gluster_graph *g, const char *volfile_id, const char *brick_name)
{
	snprintf(g->volume, sizeof(g->volume), "-");
	g->brick_path[0] = '\0';
	if (g->n) {
		bool known = g->is_brick ? volume_of_brick(g) : false;

		if (!known)
			known = volume_of_volfile(g, volfile_id);
		if (!known && !g->is_brick)
			volume_of_client(g);
		find_brick_path(g, brick_name);
	}
	for (size_t i = 0; i < g->n; i++) {
		sanitize_in_place(&g->xl[i].name);
		sanitize_in_place(&g->xl[i].type);
	}
	for (size_t i = 0; i < g->n; i++)
		if (set_id(g, i))
			return -ENOMEM;
	return 0;
}
