// SPDX-License-Identifier: Apache-2.0
/*
 * test_session_follow.c: into which process a brick that is gone is followed. Sessions and what is
 * found in /proc are made up: no process is looked at.
 */
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "clock.h"
#include "session_priv.h"
#include "tap.h"

#define DEATH_SECS 1000

static struct target shown[3], found[4];
static struct session_proc procs[2];
static struct session session;

static void make_brick(struct target *t, pid_t pid, const char *path, double start_secs)
{
	memset(t, 0, sizeof(*t));
	t->kind = TARGET_BRICK;
	t->pid = pid;
	t->start_ticks = (uint64_t)(start_secs * (double)sysconf(_SC_CLK_TCK));
	snprintf(t->volume, sizeof(t->volume), "vol");
	snprintf(t->path, sizeof(t->path), "%s", path);
}

/* Two processes of one brick each, of one name, as in two containers; the first one is gone. */
static void make_session(void)
{
	size_t i;

	memset(procs, 0, sizeof(procs));
	for (i = 0; i < 2; i++) {
		make_brick(&shown[i], 100 + (pid_t)i, "/b", 500);
		procs[i].pid = shown[i].pid;
		procs[i].first = i;
		procs[i].n_targets = 1;
	}
	procs[0].gone = true;
	procs[0].alive_ns = DEATH_SECS * CLOCK_NS_PER_SEC;
	session = (struct session){
		.targets = shown,
		.n_targets = 2,
		.procs = procs,
		.n_procs = 2,
	};
}

static void is_followed(size_t n, pid_t want, const char *name)
{
	struct target_list now = { found, n };

	is_int(session_find_new(&session, &procs[0], &now), want, "%s", name);
}

static void test_start(void)
{
	make_session();
	session.n_procs = 1; /* nobody watches the other one */
	make_brick(&found[0], 101, "/b", 500);
	is_followed(1, 0, "one that ran beside it all the time is not it");
	make_brick(&found[1], 102, "/b", DEATH_SECS + 3);
	is_followed(2, 102, "one that was started since is");
	make_brick(&found[1], 102, "/b", DEATH_SECS - 0.5);
	is_followed(2, 102, "so is one that seems to have been a little early");
	make_brick(&found[1], 102, "/b", DEATH_SECS - 2);
	is_followed(2, 0, "but not much");
	procs[0].alive_ns = 0;
	is_followed(1, 101, "of one that never was there any may be it");
}

static void test_taken(void)
{
	make_session();
	make_brick(&found[0], 101, "/b", DEATH_SECS + 2);
	is_followed(1, 0, "one that is measured already is not it");
	make_brick(&found[1], 102, "/b", DEATH_SECS + 3);
	is_followed(2, 102, "another one is");
	procs[1].gone = true;
	is_followed(1, 101, "unless that one is gone, too, and its number another's");
}

static void test_same(void)
{
	make_session();
	make_brick(&found[0], 102, "/other", DEATH_SECS + 2);
	is_followed(1, 0, "another path is another brick");
	make_brick(&found[0], 102, "/b", DEATH_SECS + 2);
	snprintf(found[0].problem, sizeof(found[0].problem), "cannot be read");
	is_followed(1, 0, "one that cannot be attached to is not followed");
	make_brick(&found[0], 100, "/b", DEATH_SECS + 2);
	is_followed(1, 0, "nor the one that is gone");
}

/* Bricks that shared a process have to be in one again. */
static void test_several(void)
{
	make_session();
	make_brick(&shown[1], 100, "/c", 500);
	procs[0].n_targets = 2;
	session.n_procs = 1;
	make_brick(&found[0], 102, "/b", DEATH_SECS + 2);
	is_followed(1, 0, "one of two bricks is not enough");
	make_brick(&found[1], 103, "/b", DEATH_SECS + 2);
	make_brick(&found[2], 103, "/c", DEATH_SECS + 2);
	is_followed(3, 103, "the process that has both is it");
}

int main(void)
{
	test_start();
	test_taken();
	test_same();
	test_several();
	return tap_done();
}
