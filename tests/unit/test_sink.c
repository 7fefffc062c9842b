/* SPDX-License-Identifier: Apache-2.0 */
/*
 * test_sink.c: the queue and its thread: order, ownership, a reader that does not read, a closed
 * pipe, a full disk, a closed descriptor. No test waits for luck: where time matters, only that a
 * call that must not block does not wait for a reader who never comes.
 */
#include "sink.h"

#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "snapshots.h"
#include "tap.h"

#define FOREVER 60000000000ULL /* long enough for any machine; nothing waits for it that works */
#define SHORT   20000000ULL

static const char *no_name3(const void *arg, unsigned int target, unsigned int layer)
{
	(void)arg;
	(void)target;
	(void)layer;
	return NULL;
}

static const char *no_name(const void *arg, unsigned int number)
{
	(void)arg;
	(void)number;
	return NULL;
}

static const struct sink_dump_names names = {
	.target = no_name, .layer = no_name3, .sub = no_name3, .op = no_name
};

static struct sink *open_sink(int out_fd, int dump_fd, size_t max_reports, size_t max_dump_bytes)
{
	struct sink_config config = { .out_fd = out_fd,
				      .dump_fd = dump_fd,
				      .version = "1.0",
				      .style = { .columns = 80 },
				      .max_reports = max_reports,
				      .max_dump_bytes = max_dump_bytes };
	struct sink *s = NULL;

	is_int(sink_open(&config, &s), 0, "the sink opens");
	return s;
}

#define DUMP_LEN (sizeof(struct wire_dump) + sizeof(struct wire_who))

static void *make_dump(size_t *ret_len)
{
	struct wire_dump *d = calloc(1, DUMP_LEN);

	d->tid = 1;
	*ret_len = DUMP_LEN;
	return d;
}

/* All that can be read from a pipe whose writers are gone. */
static size_t read_all(int fd, char *buf, size_t size)
{
	size_t len = 0;
	ssize_t n;

	while (len + 1 < size && (n = read(fd, buf + len, size - 1 - len)) > 0)
		len += (size_t)n;
	buf[len] = '\0';
	return len;
}

static void test_order(void)
{
	static char buf[65536];
	struct sink_status status;
	struct sink *s;
	size_t len;
	void *dump = make_dump(&len);
	int out[2], dumps[2];

	if (pipe(out) || pipe(dumps))
		return (void)ok(false, "no pipes");
	s = open_sink(out[1], dumps[1], 0, 0);
	is_int(sink_push_text(s, strdup("first\n")), 0, "a text is taken");
	is_int(sink_push_snapshot(s, snapshot_unsplit()), 0, "a snapshot is taken");
	is_int(sink_push_dump(s, dump, len, &names), 0, "a dump is taken");
	is_int(sink_push_text(s, strdup("last\n")), 0, "another text is taken");
	is_int(sink_drain(s, FOREVER), 0, "all of it is written");
	is_int(sink_error(s), 0, "without an error");
	is_int(sink_close(s, FOREVER, &status), 0, "the sink closes");
	is_int((long long)status.written, 4, "four items were written");
	ok(!status.timed_out && !status.dropped_reports && !status.dropped_dumps &&
		   !status.discarded,
	   "none was lost");
	close(out[1]);
	close(dumps[1]);
	read_all(out[0], buf, sizeof(buf));
	ok(strncmp(buf, "first\nbrick perfvol", 19) == 0, "in the order they came");
	ok(strlen(buf) > 5 && strcmp(buf + strlen(buf) - 5, "last\n") == 0, "to the last");
	read_all(dumps[0], buf, sizeof(buf));
	ok(strncmp(buf, "{\"schema\":\"bricktop-request/1\"", 30) == 0,
	   "dumps go to their own file");
	close(out[0]);
	close(dumps[0]);
}

static void test_json(void)
{
	static char buf[65536];
	struct sink_config config = {
		.dump_fd = -1, .json = true, .json_lines = true, .version = "1.0"
	};
	struct sink *s = NULL;
	int out[2];

	if (pipe(out))
		return (void)ok(false, "no pipe");
	config.out_fd = out[1];
	is_int(sink_open(&config, &s), 0, "the sink opens");
	sink_push_snapshot(s, snapshot_hostile());
	is_int(sink_close(s, FOREVER, NULL), 0, "closing writes what is queued");
	close(out[1]);
	read_all(out[0], buf, sizeof(buf));
	ok(strncmp(buf, "{\"schema\":\"bricktop/1\"", 22) == 0, "as JSON where asked");
	close(out[0]);
}

/* Fill a pipe, so that whoever writes to it next waits. */
static void fill_pipe(int fd)
{
	static const char block[4096];
	int flags = fcntl(fd, F_GETFL);

	fcntl(fd, F_SETFL, flags | O_NONBLOCK);
	while (write(fd, block, sizeof(block)) > 0)
		;
	while (write(fd, block, 1) > 0)
		;
	fcntl(fd, F_SETFL, flags);
}

/* Wait until the thread has taken the first item and hangs with it: then the queue is empty. */
static void push_hanging(struct sink *s)
{
	sink_push_text(s, strdup("hangs\n"));
	is_int(sink_drain(s, SHORT), -ETIMEDOUT, "nothing is read, nothing is drained");
}

static void test_reader_that_does_not_read(void)
{
	struct sink_status status;
	unsigned int full = 0, dumps_full = 0;
	struct sink *s;
	int out[2];

	if (pipe(out))
		return (void)ok(false, "no pipe");
	fill_pipe(out[1]);
	s = open_sink(out[1], out[1], 4, 3 * DUMP_LEN - 1);
	push_hanging(s);
	for (int i = 0; i < 100; i++) {
		size_t len;
		void *dump = make_dump(&len);

		full += sink_push_snapshot(s, snapshot_empty()) == -ENOBUFS;
		dumps_full += sink_push_dump(s, dump, len, &names) == -ENOBUFS;
	}
	/* The thread may have had no turn yet: one place more or less. */
	ok(full == 96 || full == 97, "beyond four reports, old ones are dropped (%u)", full);
	is_int(dumps_full, 98, "beyond two dumps, new ones are");
	is_int(sink_close(s, SHORT, &status), -ETIMEDOUT, "closing does not wait for the reader");
	ok(status.timed_out, "and says that something was not written");
	is_int((long long)status.dropped_reports, full, "dropped reports are counted");
	is_int((long long)status.dropped_dumps, 98, "so are dropped dumps");
	is_int((long long)status.written, 0, "nothing was written");
	close(out[0]);
	close(out[1]);
}

/* The newest report survives a queue that overflows. */
static void test_newest_survives(void)
{
	static char buf[1 << 20];
	size_t filled, len;
	struct sink *s;
	int out[2];

	if (pipe(out))
		return (void)ok(false, "no pipe");
	fill_pipe(out[1]);
	filled = (size_t)fcntl(out[1], F_GETPIPE_SZ);
	s = open_sink(out[1], -1, 2, 0);
	push_hanging(s);
	for (int i = 0; i < 9; i++) {
		struct snapshot *snap = snapshot_unsplit();

		snprintf(snap->targets[0].name, sizeof(snap->targets[0].name), "number-%d", i);
		sink_push_snapshot(s, snap);
	}
	/* Now somebody reads: as much as the pipe held, and the thread goes on. */
	for (len = 0; len < filled;) {
		ssize_t n = read(out[0], buf, filled - len);

		if (n <= 0)
			break;
		len += (size_t)n;
	}
	is_int(sink_close(s, FOREVER, NULL), 0, "the reader came back: all is written");
	close(out[1]);
	read_all(out[0], buf, sizeof(buf));
	ok(strstr(buf, "\n\nbrick number-8") != NULL, "the newest report is there, set off");
	ok(strstr(buf, "number-3") == NULL, "an older one made room");
	close(out[0]);
}

static void test_failing_output(int fd, int dump_fd, int want, const char *what)
{
	struct sink_status status;
	struct sink *s = open_sink(fd, dump_fd, 0, 0);
	size_t len;
	void *dump = make_dump(&len);

	sink_push_text(s, strdup("text\n"));
	is_int(sink_drain(s, FOREVER), 0, "%s does not hang", what);
	is_int(sink_error(s), want, "%s is noticed", what);
	is_int(sink_push_snapshot(s, snapshot_chain()), -EPIPE, "what comes later is refused");
	sink_push_dump(s, dump, len, &names);
	is_int(sink_close(s, FOREVER, &status), want, "%s is reported at the end", what);
	is_int(status.out_error, want, "as the reports' error");
	is_int(status.dump_error, 0, "dumps have their own, and none failed");
	is_int((long long)status.discarded, 1, "what was refused is counted");
	ok(!status.timed_out, "and nothing timed out");
}

static void test_failures(void)
{
	int null_fd = open("/dev/null", O_WRONLY | O_CLOEXEC);
	int full_fd = open("/dev/full", O_WRONLY | O_CLOEXEC);
	int out[2];

	if (pipe(out))
		return (void)ok(false, "no pipe");
	close(out[0]);
	test_failing_output(out[1], null_fd, -EPIPE, "a reader that went away");
	close(out[1]);
	if (full_fd >= 0) {
		test_failing_output(full_fd, null_fd, -ENOSPC, "a full disk");
		close(full_fd);
	} else {
		skip("a full disk", "no /dev/full");
	}
	close(null_fd);
}

/* The number of a closed descriptor may be given to the sink's own: that must not be written to. */
static void test_closed_output(void)
{
	int closed = open("/dev/null", O_WRONLY | O_CLOEXEC);
	struct sink_status status;
	struct sink *s;

	close(closed);
	s = open_sink(closed, -1, 0, 0);
	is_int(sink_push_text(s, strdup("text\n")), -EPIPE, "a closed output takes nothing");
	is_int(sink_close(s, FOREVER, &status), -EBADF, "and is reported as what it is");
	is_int((long long)status.discarded, 1, "what it did not take is counted");
}

static void test_no_dump_file(void)
{
	int null_fd = open("/dev/null", O_WRONLY | O_CLOEXEC);
	struct sink_status status;
	struct sink *s = open_sink(null_fd, -1, 0, 0);
	size_t len;
	void *dump = make_dump(&len);

	sink_push_dump(s, dump, len, &names);
	is_int(sink_close(s, FOREVER, &status), -EBADF, "a dump without a file for it is an error");
	is_int(status.dump_error, -EBADF, "of the dumps");
	is_int(status.out_error, 0, "not of the reports");
	close(null_fd);
}

static void test_bad_dump(void)
{
	int null_fd = open("/dev/null", O_WRONLY | O_CLOEXEC);
	struct sink *s = open_sink(null_fd, null_fd, 0, 0);
	struct sink_status status;

	sink_push_dump(s, calloc(1, 8), 8, &names);
	sink_push_text(s, strdup("more\n"));
	is_int(sink_close(s, FOREVER, &status), 0, "a bad record is no error of the output");
	is_int((long long)status.bad_dumps, 1, "it is counted");
	is_int((long long)status.written, 1, "and what follows is written");
	is_int(sink_close(NULL, 0, NULL), 0, "closing nothing is no error");
	close(null_fd);
}

/* Signals are for the collecting thread: the writer must never be the one that takes them. */
static void test_signals_stay_blocked(void)
{
	int null_fd = open("/dev/null", O_WRONLY | O_CLOEXEC);
	struct timespec no_wait = { 0 };
	sigset_t set, old;
	struct sink *s;

	sigemptyset(&set);
	sigaddset(&set, SIGUSR1);
	s = open_sink(null_fd, -1, 0, 0);
	sigprocmask(SIG_BLOCK, &set, &old);
	/* Were it open in the writer, SIGUSR1 would end this program. */
	kill(getpid(), SIGUSR1);
	is_int(sigtimedwait(&set, NULL, &no_wait), SIGUSR1, "a signal waits for this thread");
	sigprocmask(SIG_SETMASK, &old, NULL);
	sink_close(s, FOREVER, NULL);
	close(null_fd);
}

int main(void)
{
	test_order();
	test_json();
	test_reader_that_does_not_read();
	test_newest_survives();
	test_failures();
	test_closed_output();
	test_no_dump_file();
	test_bad_dump();
	test_signals_stay_blocked();
	return tap_done();
}
