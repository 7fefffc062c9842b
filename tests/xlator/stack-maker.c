/* SPDX-License-Identifier: Apache-2.0 */
/*
 * stack-maker: makes and ends call stacks as fast as asked, with nothing of the
 * network or the disk in the way, so that the cost of looking at a request can be
 * measured alone. It is linked to libglusterfs, winds and unwinds through real
 * xlators by the real macros, and stands where a brick's protocol/server would
 * (bed_stacks in tests/lib/bed.sh puts it there, in a mount namespace of its own).
 * A second copy of the same object, without a subvolume, is the graph's bottom: it
 * unwinds at once. It must know nothing about what measures it.
 */
#include <fcntl.h>
#include <pthread.h>
#include <sys/mman.h>
#include <time.h>
#include <unistd.h>

#include <glusterfs/defaults.h>
#include <glusterfs/logging.h>
#include <glusterfs/xlator.h>

#define MAX_THREADS 64
#define PACE_NS     1000000 /* a paced thread makes a batch, then sleeps until the next */
#define WRITE_BYTES 4096
#define GO_POLL_US  1000

struct maker {
	xlator_t *xl;
	uint64_t rate_hz; /* of all threads together; 0: as fast as it goes */
	uint64_t count;   /* stop after as many; 0: never */
	uint64_t threads;
	char *go_file;     /* wait until it exists; owned by xl->options */
	uint64_t *started; /* [0] requests begun, [1] requests ended; maybe in a file */
	fd_t *fd;
	struct iobref *iobref;
	pthread_t tid[MAX_THREADS];
	unsigned int running;
	int stop;
};

/* The top callback of each request: what a server does when the reply is out. */
static int32_t maker_writev_cbk(call_frame_t *frame, void *cookie, xlator_t *this, int32_t op_ret,
				int32_t op_errno, struct iatt *before, struct iatt *after,
				dict_t *xdata)
{
	struct maker *maker = this->private;

	(void)cookie;
	(void)op_ret;
	(void)op_errno;
	(void)before;
	(void)after;
	(void)xdata;
	STACK_DESTROY(frame->root);
	__atomic_add_fetch(&maker->started[1], 1, __ATOMIC_RELAXED);
	return 0;
}

static int make_request(struct maker *maker, uint64_t unique)
{
	struct iovec vector = { .iov_base = NULL, .iov_len = WRITE_BYTES };
	xlator_t *xl = maker->xl;
	call_frame_t *frame;

	frame = create_frame(xl, xl->ctx->pool);
	if (!frame)
		return -ENOMEM;
	/* a server's stacks carry the state of their request; others are nobody's */
	frame->root->state = maker;
	frame->root->unique = unique;
	frame->root->pid = getpid();
	frame->root->op = GF_FOP_WRITE;
	frame->op = GF_FOP_WRITE;
	STACK_WIND(frame, maker_writev_cbk, FIRST_CHILD(xl), FIRST_CHILD(xl)->fops->writev,
		   maker->fd, &vector, 1, 0, 0, maker->iobref, NULL);
	return 0;
}

static void sleep_until(struct timespec *when)
{
	when->tv_nsec += PACE_NS;
	if (when->tv_nsec >= 1000000000) {
		when->tv_nsec -= 1000000000;
		when->tv_sec++;
	}
	clock_nanosleep(CLOCK_MONOTONIC, TIMER_ABSTIME, when, NULL);
}

/* How many requests this thread may make before it sleeps, fractions carried over. */
static uint64_t batch_size(const struct maker *maker, uint64_t *carry)
{
	uint64_t per_batch = maker->rate_hz * PACE_NS + *carry;
	uint64_t unit = 1000000000ULL * maker->threads;

	*carry = per_batch % unit;
	return per_batch / unit;
}

static void *maker_thread(void *arg)
{
	struct maker *maker = arg;
	uint64_t n, batch, carry = 0;
	struct timespec when;

	THIS = maker->xl;
	while (maker->go_file && access(maker->go_file, F_OK) < 0) {
		if (__atomic_load_n(&maker->stop, __ATOMIC_RELAXED))
			return NULL;
		usleep(GO_POLL_US);
	}
	clock_gettime(CLOCK_MONOTONIC, &when);
	while (!__atomic_load_n(&maker->stop, __ATOMIC_RELAXED)) {
		batch = maker->rate_hz ? batch_size(maker, &carry) : 1000;
		while (batch--) {
			n = __atomic_add_fetch(&maker->started[0], 1, __ATOMIC_RELAXED);
			if (maker->count && n > maker->count) {
				__atomic_sub_fetch(&maker->started[0], 1, __ATOMIC_RELAXED);
				return NULL;
			}
			if (make_request(maker, n))
				return NULL;
		}
		if (maker->rate_hz)
			sleep_until(&when);
	}
	return NULL;
}

static int start_threads(struct maker *maker)
{
	int rc;

	for (; maker->running < maker->threads; maker->running++) {
		rc = gf_thread_create(&maker->tid[maker->running], NULL, maker_thread, maker,
				      "maker%03u", maker->running);
		if (rc)
			return -rc;
	}
	return 0;
}

/* The graph is complete and up when the top hears PARENT_UP; not so in init. */
static int32_t maker_notify(xlator_t *this, int32_t event, void *data, ...)
{
	struct maker *maker = this->private;
	int32_t ret = default_notify(this, event, data);

	if (event == GF_EVENT_PARENT_UP && maker->threads && !maker->running &&
	    start_threads(maker)) {
		gf_log(this->name, GF_LOG_ERROR, "cannot start the makers");
		return -1;
	}
	return ret;
}

static char *option_of(xlator_t *this, char *key)
{
	data_t *data = dict_get(this->options, key);

	return data ? data->data : NULL;
}

static uint64_t option_number(xlator_t *this, char *key, uint64_t otherwise)
{
	char *text = option_of(this, key);

	return text ? strtoull(text, NULL, 10) : otherwise;
}

/* Two u64, in a file that a test can read, or else in private memory. */
static uint64_t *map_counters(const char *path)
{
	const size_t bytes = 2 * sizeof(uint64_t);
	int flags = MAP_SHARED, fd = -1;
	void *table;

	if (path) {
		fd = open(path, O_RDWR | O_CREAT | O_TRUNC, 0644);
		if (fd < 0)
			return NULL;
		if (ftruncate(fd, bytes) < 0) {
			close(fd);
			return NULL;
		}
	} else {
		flags |= MAP_ANONYMOUS;
	}
	table = mmap(NULL, bytes, PROT_READ | PROT_WRITE, flags, fd, 0);
	if (fd >= 0)
		close(fd);
	return table == MAP_FAILED ? NULL : table;
}

/* A file for the xlators in between, some of which look into it. */
static int make_file(struct maker *maker)
{
	inode_table_t *table;
	inode_t *inode;

	table = inode_table_new(16, maker->xl, 0, 0);
	if (!table)
		return -ENOMEM;
	inode = inode_new(table);
	if (!inode)
		return -ENOMEM;
	inode->ia_type = IA_IFREG;
	maker->fd = fd_create(inode, getpid());
	maker->iobref = iobref_new();
	return maker->fd && maker->iobref ? 0 : -ENOMEM;
}

static int32_t maker_init(xlator_t *this)
{
	struct maker *maker = calloc(1, sizeof(*maker));

	if (!maker)
		return -1;
	maker->xl = this;
	maker->rate_hz = option_number(this, "rate", 20000);
	maker->count = option_number(this, "count", 0);
	maker->threads = this->children ? option_number(this, "threads", 1) : 0;
	maker->go_file = option_of(this, "go-file");
	maker->started = map_counters(option_of(this, "counter-file"));
	if (!maker->started || maker->threads > MAX_THREADS ||
	    (this->children && make_file(maker))) {
		gf_log(this->name, GF_LOG_ERROR, "no counters, too many threads, or no memory");
		free(maker);
		return -1;
	}
	this->private = maker;
	return 0;
}

static void maker_fini(xlator_t *this)
{
	struct maker *maker = this->private;
	unsigned int i;

	if (!maker)
		return;
	__atomic_store_n(&maker->stop, 1, __ATOMIC_RELAXED);
	for (i = 0; i < maker->running; i++)
		pthread_join(maker->tid[i], NULL);
}

/* The bottom of the graph. */
static int32_t maker_writev(call_frame_t *frame, xlator_t *this, fd_t *fd, struct iovec *vector,
			    int32_t count, off_t offset, uint32_t flags, struct iobref *iobref,
			    dict_t *xdata)
{
	struct iatt before = { .ia_type = IA_IFREG }, after = before;

	(void)this;
	(void)fd;
	(void)vector;
	(void)count;
	(void)offset;
	(void)flags;
	(void)iobref;
	(void)xdata;
	STACK_UNWIND_STRICT(writev, frame, WRITE_BYTES, 0, &before, &after, NULL);
	return 0;
}

static struct xlator_fops maker_fops = {
	.writev = maker_writev,
};

static struct xlator_cbks maker_cbks;

static struct volume_options maker_options[] = {
	{ .key = { "rate" }, .type = GF_OPTION_TYPE_ANY, .description = "requests a second" },
	{ .key = { "count" }, .type = GF_OPTION_TYPE_ANY, .description = "stop after as many" },
	{ .key = { "threads" }, .type = GF_OPTION_TYPE_ANY, .description = "how many make them" },
	{ .key = { "go-file" }, .type = GF_OPTION_TYPE_STR, .description = "wait until it exists" },
	{ .key = { "counter-file" },
	  .type = GF_OPTION_TYPE_STR,
	  .description = "see map_counters" },
	{ .key = { NULL } },
};

xlator_api_t xlator_api = {
	.init = maker_init,
	.fini = maker_fini,
	.notify = maker_notify,
	.op_version = { 1 },
	.fops = &maker_fops,
	.cbks = &maker_cbks,
	.options = maker_options,
	.identifier = "stack-maker",
	.category = GF_EXPERIMENTAL,
};
