/* SPDX-License-Identifier: Apache-2.0 */
/*
 * sink.c: a bounded queue and the thread that empties it. The lock is held to link and unlink items
 * only, never over rendering or output. Writes go out in pieces that a pipe said it would take, so
 * that a reader who has stopped reading cannot keep the thread from being told to give up.
 */
#include "sink.h"

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <pthread.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/eventfd.h>
#include <unistd.h>

#include "clock.h"
#include "model.h"
#include "rights.h"
#include "sink_json.h"
#include "sink_text.h"

#define DEFAULT_REPORTS 16
#define DUMP_BYTES      (8 << 20) /* as much as the ring holds, which may come at once */
#define PIECE_BYTES     4096      /* PIPE_BUF: what poll() promises to a pipe's writer */
#define GRACE_NS        500000000ULL

enum item_kind { ITEM_SNAPSHOT, ITEM_TEXT, ITEM_DUMP };

struct item {
	struct item *next;
	enum item_kind kind;
	void *data; /* struct snapshot, string, or record */
	size_t len;
	const struct sink_dump_names *names;
	bool separate; /* a text report that follows another: a blank line first */
};

struct sink {
	struct sink_config config;
	pthread_t thread;
	pthread_mutex_t lock; /* everything below */
	pthread_cond_t work, idle;
	struct item *head, **tail;
	size_t n_reports, dump_bytes; /* waiting */
	uint64_t snapshots_taken;
	bool closing, busy;
	struct sink_status status;
	int wake_fd; /* readable: stop in the middle of a write */
};

static void free_item(struct item *item)
{
	if (!item)
		return;
	if (item->kind == ITEM_SNAPSHOT)
		snapshot_free(item->data);
	else
		free(item->data);
	free(item);
}

static void free_sink(struct sink *s)
{
	while (s->head) {
		struct item *item = s->head;

		s->head = item->next;
		free_item(item);
	}
	if (s->wake_fd >= 0)
		close(s->wake_fd);
	pthread_cond_destroy(&s->idle);
	pthread_cond_destroy(&s->work);
	pthread_mutex_destroy(&s->lock);
	free(s);
}

static void deadline_after(uint64_t timeout_ns, struct timespec *ret_at)
{
	uint64_t ns = clock_mono_ns();

	/* A year is as good as for ever, and cannot overflow. */
	if (timeout_ns > 365ULL * 86400 * CLOCK_NS_PER_SEC)
		timeout_ns = 365ULL * 86400 * CLOCK_NS_PER_SEC;
	ns += timeout_ns;
	ret_at->tv_sec = (time_t)(ns / CLOCK_NS_PER_SEC);
	ret_at->tv_nsec = (long)(ns % CLOCK_NS_PER_SEC);
}

/* ---- the writing thread ------------------------------------------------ */

/* All of it, or -errno; -ETIMEDOUT once sink_close() has run out of patience. */
static int write_all(const struct sink *s, int fd, const char *data, size_t len)
{
	if (fd < 0)
		return -EBADF; /* poll() would ignore it for ever */
	while (len > 0) {
		struct pollfd fds[2] = { { .fd = fd, .events = POLLOUT },
					 { .fd = s->wake_fd, .events = POLLIN } };
		ssize_t n;

		if (poll(fds, 2, -1) < 0 && errno != EINTR)
			return -errno;
		if (fds[1].revents)
			return -ETIMEDOUT;
		if (!fds[0].revents)
			continue;
		n = write(fd, data, len < PIECE_BYTES ? len : PIECE_BYTES);
		if (n < 0 && errno != EINTR && errno != EAGAIN)
			return -errno;
		if (n > 0) {
			data += n;
			len -= (size_t)n;
		}
	}
	return 0;
}

static int render(const struct sink *s, const struct item *item, FILE *out)
{
	const struct sink_config *c = &s->config;

	switch (item->kind) {
	case ITEM_SNAPSHOT:
		if (item->separate && !c->json)
			fputc('\n', out);
		return c->json ? sink_json_report(out, item->data, c->version, c->json_lines) :
				 sink_text_report(out, item->data, &c->style);
	case ITEM_DUMP:
		return sink_dump_write(out, item->data, item->len, item->names);
	case ITEM_TEXT:
		return fputs(item->data, out) < 0 ? -ENOMEM : 0;
	}
	return -EINVAL;
}

static int write_item(const struct sink *s, const struct item *item)
{
	int fd = item->kind == ITEM_DUMP ? s->config.dump_fd : s->config.out_fd;
	char *data = NULL;
	size_t len = 0;
	FILE *out = open_memstream(&data, &len);
	int err;

	if (!out)
		return -ENOMEM;
	err = render(s, item, out);
	if (fclose(out) != 0 && !err)
		err = -ENOMEM;
	if (!err)
		err = write_all(s, fd, data, len);
	free(data);
	return err;
}

static int *item_error(struct sink *s, const struct item *item)
{
	return item->kind == ITEM_DUMP ? &s->status.dump_error : &s->status.out_error;
}

/* Unlink the first item. Called with the lock. */
static struct item *take_item(struct sink *s)
{
	struct item *item = s->head;

	s->head = item->next;
	if (!s->head)
		s->tail = &s->head;
	if (item->kind == ITEM_DUMP)
		s->dump_bytes -= item->len;
	else
		s->n_reports--;
	if (item->kind == ITEM_SNAPSHOT)
		item->separate = s->snapshots_taken++ > 0;
	return item;
}

/* Called with the lock, which is let go while the item is rendered and written. */
static void handle_item(struct sink *s, struct item *item)
{
	bool broken = *item_error(s, item) != 0;
	int err = 0;

	s->busy = true;
	pthread_mutex_unlock(&s->lock);
	if (!broken)
		err = write_item(s, item);
	pthread_mutex_lock(&s->lock);
	s->busy = false;
	if (broken)
		s->status.discarded++;
	else if (err == -EBADMSG)
		s->status.bad_dumps++;
	else if (err == -ETIMEDOUT)
		s->status.timed_out = true;
	else if (err)
		*item_error(s, item) = err;
	else
		s->status.written++;
}

static void *writer_main(void *arg)
{
	struct sink *s = arg;

	/* what it writes to is open; of a kernel that refuses this nothing is lost by it */
	(void)rights_keep(0);
	pthread_mutex_lock(&s->lock);
	for (;;) {
		struct item *item;

		while (!s->head && !s->closing) {
			pthread_cond_broadcast(&s->idle);
			pthread_cond_wait(&s->work, &s->lock);
		}
		if (!s->head || s->status.timed_out)
			break;
		item = take_item(s);
		handle_item(s, item);
		pthread_mutex_unlock(&s->lock);
		free_item(item);
		pthread_mutex_lock(&s->lock);
	}
	pthread_cond_broadcast(&s->idle);
	pthread_mutex_unlock(&s->lock);
	return NULL;
}

/* ---- start ------------------------------------------------------------- */

static int start_thread(struct sink *s)
{
	sigset_t all, old;
	int err;

	/* Signals are for the collecting thread; SIGPIPE becomes EPIPE. */
	sigfillset(&all);
	pthread_sigmask(SIG_SETMASK, &all, &old);
	err = -pthread_create(&s->thread, NULL, writer_main, s);
	pthread_sigmask(SIG_SETMASK, &old, NULL);
	return err;
}

int sink_open(const struct sink_config *config, struct sink **ret_sink)
{
	struct sink *s = calloc(1, sizeof(*s));
	pthread_condattr_t attr;
	int err;

	if (!s)
		return -ENOMEM;
	s->config = *config;
	if (s->config.max_reports == 0)
		s->config.max_reports = DEFAULT_REPORTS;
	if (s->config.max_dump_bytes == 0)
		s->config.max_dump_bytes = DUMP_BYTES;
	s->tail = &s->head;
	pthread_mutex_init(&s->lock, NULL);
	pthread_condattr_init(&attr);
	pthread_condattr_setclock(&attr, CLOCK_MONOTONIC);
	pthread_cond_init(&s->work, &attr);
	pthread_cond_init(&s->idle, &attr);
	pthread_condattr_destroy(&attr);
	/* Asked now, before the number of a closed descriptor is given to something of ours. */
	if (fcntl(config->out_fd, F_GETFD) < 0)
		s->status.out_error = -errno;
	s->wake_fd = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);
	err = s->wake_fd < 0 ? -errno : start_thread(s);
	if (err) {
		free_sink(s);
		return err;
	}
	*ret_sink = s;
	return 0;
}

/* ---- the collecting thread's side -------------------------------------- */

/* Unlink the oldest snapshot that waits, to make room. Called with the lock. */
static struct item *evict_snapshot(struct sink *s)
{
	struct item **at = &s->head;

	while (*at && (*at)->kind != ITEM_SNAPSHOT)
		at = &(*at)->next;
	if (*at) {
		struct item *item = *at;

		*at = item->next;
		if (!item->next)
			s->tail = at;
		s->n_reports--;
		return item;
	}
	return NULL;
}

/*
 * The newest report is worth most: an older snapshot makes room for it. Dumps are a sample anyway:
 * the one that finds no room is dropped. Called with the lock; *ret_drop is what to free.
 */
static int link_item(struct sink *s, struct item *item, struct item **ret_drop)
{
	int err = 0;

	if (*item_error(s, item) != 0 || s->closing) {
		s->status.discarded++;
		*ret_drop = item;
		return -EPIPE;
	}
	if (item->kind == ITEM_DUMP && s->dump_bytes + item->len > s->config.max_dump_bytes) {
		s->status.dropped_dumps++;
		*ret_drop = item;
		return -ENOBUFS;
	}
	if (item->kind != ITEM_DUMP && s->n_reports >= s->config.max_reports) {
		*ret_drop = evict_snapshot(s);
		s->status.dropped_reports++;
		err = -ENOBUFS;
		if (!*ret_drop) {
			*ret_drop = item;
			return err;
		}
	}
	*s->tail = item;
	s->tail = &item->next;
	if (item->kind == ITEM_DUMP)
		s->dump_bytes += item->len;
	else
		s->n_reports++;
	pthread_cond_signal(&s->work);
	return err;
}

static int push(struct sink *s, const struct item *values)
{
	struct item *item = malloc(sizeof(*item)), *drop = NULL;
	int err;

	if (!item) {
		if (values->kind == ITEM_SNAPSHOT)
			snapshot_free(values->data);
		else
			free(values->data);
		return -ENOMEM;
	}
	*item = *values;
	pthread_mutex_lock(&s->lock);
	err = link_item(s, item, &drop);
	pthread_mutex_unlock(&s->lock);
	free_item(drop);
	return err;
}

int sink_push_snapshot(struct sink *s, struct snapshot *snap)
{
	return push(s, &(struct item){ .kind = ITEM_SNAPSHOT, .data = snap });
}

int sink_push_text(struct sink *s, char *text)
{
	return push(s, &(struct item){ .kind = ITEM_TEXT, .data = text });
}

int sink_push_dump(struct sink *s, void *record, size_t len, const struct sink_dump_names *names)
{
	return push(
		s, &(struct item){ .kind = ITEM_DUMP, .data = record, .len = len, .names = names });
}

int sink_error(struct sink *s)
{
	int err;

	pthread_mutex_lock(&s->lock);
	err = s->status.out_error;
	pthread_mutex_unlock(&s->lock);
	return err;
}

int sink_drain(struct sink *s, uint64_t timeout_ns)
{
	struct timespec at;
	int err = 0;

	deadline_after(timeout_ns, &at);
	pthread_mutex_lock(&s->lock);
	while ((s->head || s->busy) && !err)
		err = -pthread_cond_timedwait(&s->idle, &s->lock, &at);
	if (!s->head && !s->busy)
		err = 0;
	pthread_mutex_unlock(&s->lock);
	return err;
}

/* ---- end --------------------------------------------------------------- */

/* 0, or -ETIMEDOUT where the thread still hangs in a write. */
static int join_writer(struct sink *s, uint64_t timeout_ns)
{
	const uint64_t one = 1;
	struct timespec at;

	deadline_after(timeout_ns, &at);
	if (pthread_clockjoin_np(s->thread, NULL, CLOCK_MONOTONIC, &at) == 0)
		return 0;
	if (write(s->wake_fd, &one, sizeof(one)) < 0)
		return -ETIMEDOUT;
	deadline_after(GRACE_NS, &at);
	return -pthread_clockjoin_np(s->thread, NULL, CLOCK_MONOTONIC, &at);
}

int sink_close(struct sink *s, uint64_t timeout_ns, struct sink_status *ret_status)
{
	struct sink_status status;
	bool hangs;

	if (!s)
		return 0;
	pthread_mutex_lock(&s->lock);
	s->closing = true;
	pthread_cond_signal(&s->work);
	pthread_mutex_unlock(&s->lock);
	hangs = join_writer(s, timeout_ns) != 0;
	pthread_mutex_lock(&s->lock);
	status = s->status;
	pthread_mutex_unlock(&s->lock);
	status.timed_out = status.timed_out || hangs;
	if (hangs)
		pthread_detach(s->thread); /* it still uses s: that memory stays */
	else
		free_sink(s);
	if (ret_status)
		*ret_status = status;
	if (status.out_error || status.dump_error)
		return status.out_error ? status.out_error : status.dump_error;
	return status.timed_out ? -ETIMEDOUT : 0;
}
