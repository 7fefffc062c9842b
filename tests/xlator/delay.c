/* SPDX-License-Identifier: Apache-2.0 */
/*
 * delay: a GlusterFS translator for tests, ground truth for attribution.
 *
 * It winds every common fop properly, i.e. with a call frame of its own (unlike
 * debug/delay-gen, which winds by tail), and can hold chosen fops up before it
 * winds, in the calling thread, so that the time is its own self time. Which
 * requests are delayed is a matter of counting, never of chance, and how many were
 * is kept in a file that a test maps or reads; a log, if wanted, has each one. Without options it
 * is a pass-through xlator of the usual kind, used to grow graphs. It must know nothing about what
 * measures it.
 */
#include <fcntl.h>
#include <inttypes.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include <glusterfs/defaults.h>
#include <glusterfs/logging.h>
#include <glusterfs/xlator.h>

/* The counter file: u64 seen[64], then u64 delayed[64], both by GF_FOP number. */
#define COUNTERS_PER_TABLE 64
#define COUNTER_BYTES      (2 * COUNTERS_PER_TABLE * sizeof(uint64_t))
#define HOLD_POLL_US       2000

_Static_assert(GF_FOP_MAXVALUE <= COUNTERS_PER_TABLE, "the counter file is too small");

struct delay_conf {
	uint64_t delay_us;
	uint64_t percent;
	uint64_t every;  /* where not 0: one of so many, instead of a share */
	uint64_t ops;    /* bit mask by GF_FOP number */
	char *hold_file; /* owned by this->options */
	uint64_t late;   /* of writes the reply is held, not the request */
	uint64_t *seen;
	uint64_t *delayed;
	int log_fd; /* -1: none */
};

/*
 * Request n of a fop is delayed where floor(n * percent / 100) grows: exactly the
 * share asked for, evenly spread, whatever the threads do.
 */
static gf_boolean_t delay_due(const struct delay_conf *conf, uint64_t n)
{
	if (conf->every)
		return n % conf->every == 0;
	return n * conf->percent / 100 > (n - 1) * conf->percent / 100;
}

static uint64_t wall_ns(void)
{
	struct timespec now;

	clock_gettime(CLOCK_REALTIME, &now);
	return now.tv_sec * 1000000000ULL + now.tv_nsec;
}

/* A line "BEGIN END FOP" in one write: threads do not mix. */
static void log_delay(const struct delay_conf *conf, glusterfs_fop_t op, uint64_t begin)
{
	char line[64];
	int len =
		snprintf(line, sizeof(line), "%" PRIu64 " %" PRIu64 " %d\n", begin, wall_ns(), op);

	if (write(conf->log_fd, line, len) != len)
		gf_log("delay", GF_LOG_ERROR, "cannot log a delay");
}

static void delay_request(xlator_t *this, glusterfs_fop_t op)
{
	struct delay_conf *conf = this->private;
	uint64_t n, begin;

	n = __atomic_add_fetch(&conf->seen[op], 1, __ATOMIC_RELAXED);
	if (!(conf->ops & (1ULL << op)) || !delay_due(conf, n))
		return;
	if (!conf->delay_us && !conf->hold_file)
		return;
	__atomic_add_fetch(&conf->delayed[op], 1, __ATOMIC_RELAXED);
	begin = wall_ns();
	if (conf->delay_us)
		usleep(conf->delay_us);
	while (conf->hold_file && access(conf->hold_file, F_OK) == 0)
		usleep(HOLD_POLL_US);
	if (conf->log_fd >= 0)
		log_delay(conf, op, begin);
}

/*
 * One fop: its parameters as the table of xlator.h declares them, its arguments as
 * passed on. The callback is libglusterfs's own, which unwinds and nothing else.
 */
#define DELAY_FOP(name, OP, params, ...)                                   \
	static int32_t delay_##name params                                 \
	{                                                                  \
		delay_request(this, GF_FOP_##OP);                          \
		STACK_WIND(frame, default_##name##_cbk, FIRST_CHILD(this), \
			   FIRST_CHILD(this)->fops->name, __VA_ARGS__);    \
		return 0;                                                  \
	}

#define HEAD     call_frame_t *frame, xlator_t *this
#define HEAD_CBK call_frame_t *frame, void *cookie, xlator_t *this

DELAY_FOP(lookup, LOOKUP, (HEAD, loc_t *loc, dict_t *xdata), loc, xdata)
DELAY_FOP(stat, STAT, (HEAD, loc_t *loc, dict_t *xdata), loc, xdata)
DELAY_FOP(fstat, FSTAT, (HEAD, fd_t *fd, dict_t *xdata), fd, xdata)
DELAY_FOP(statfs, STATFS, (HEAD, loc_t *loc, dict_t *xdata), loc, xdata)
DELAY_FOP(access, ACCESS, (HEAD, loc_t *loc, int32_t mask, dict_t *xdata), loc, mask, xdata)
DELAY_FOP(open, OPEN, (HEAD, loc_t *loc, int32_t flags, fd_t *fd, dict_t *xdata), loc, flags, fd,
	  xdata)
DELAY_FOP(create, CREATE,
	  (HEAD, loc_t *loc, int32_t flags, mode_t mode, mode_t umask, fd_t *fd, dict_t *xdata),
	  loc, flags, mode, umask, fd, xdata)
DELAY_FOP(readv, READ, (HEAD, fd_t *fd, size_t size, off_t offset, uint32_t flags, dict_t *xdata),
	  fd, size, offset, flags, xdata)
DELAY_FOP(flush, FLUSH, (HEAD, fd_t *fd, dict_t *xdata), fd, xdata)
DELAY_FOP(fsync, FSYNC, (HEAD, fd_t *fd, int32_t datasync, dict_t *xdata), fd, datasync, xdata)
DELAY_FOP(truncate, TRUNCATE, (HEAD, loc_t *loc, off_t offset, dict_t *xdata), loc, offset, xdata)
DELAY_FOP(ftruncate, FTRUNCATE, (HEAD, fd_t *fd, off_t offset, dict_t *xdata), fd, offset, xdata)
DELAY_FOP(opendir, OPENDIR, (HEAD, loc_t *loc, fd_t *fd, dict_t *xdata), loc, fd, xdata)
DELAY_FOP(readdir, READDIR, (HEAD, fd_t *fd, size_t size, off_t offset, dict_t *xdata), fd, size,
	  offset, xdata)
DELAY_FOP(readdirp, READDIRP, (HEAD, fd_t *fd, size_t size, off_t offset, dict_t *xdata), fd, size,
	  offset, xdata)
DELAY_FOP(mkdir, MKDIR, (HEAD, loc_t *loc, mode_t mode, mode_t umask, dict_t *xdata), loc, mode,
	  umask, xdata)
DELAY_FOP(rmdir, RMDIR, (HEAD, loc_t *loc, int flags, dict_t *xdata), loc, flags, xdata)
DELAY_FOP(unlink, UNLINK, (HEAD, loc_t *loc, int flags, dict_t *xdata), loc, flags, xdata)
DELAY_FOP(rename, RENAME, (HEAD, loc_t *oldloc, loc_t *newloc, dict_t *xdata), oldloc, newloc,
	  xdata)
DELAY_FOP(setattr, SETATTR, (HEAD, loc_t *loc, struct iatt *stbuf, int32_t valid, dict_t *xdata),
	  loc, stbuf, valid, xdata)
DELAY_FOP(fsetattr, FSETATTR, (HEAD, fd_t *fd, struct iatt *stbuf, int32_t valid, dict_t *xdata),
	  fd, stbuf, valid, xdata)
DELAY_FOP(setxattr, SETXATTR, (HEAD, loc_t *loc, dict_t *dict, int32_t flags, dict_t *xdata), loc,
	  dict, flags, xdata)
DELAY_FOP(getxattr, GETXATTR, (HEAD, loc_t *loc, const char *name, dict_t *xdata), loc, name, xdata)
DELAY_FOP(fgetxattr, FGETXATTR, (HEAD, fd_t *fd, const char *name, dict_t *xdata), fd, name, xdata)
DELAY_FOP(xattrop, XATTROP,
	  (HEAD, loc_t *loc, gf_xattrop_flags_t optype, dict_t *dict, dict_t *xdata), loc, optype,
	  dict, xdata)
DELAY_FOP(fxattrop, FXATTROP,
	  (HEAD, fd_t *fd, gf_xattrop_flags_t optype, dict_t *dict, dict_t *xdata), fd, optype,
	  dict, xdata)
DELAY_FOP(inodelk, INODELK,
	  (HEAD, const char *volume, loc_t *loc, int32_t cmd, struct gf_flock *lock, dict_t *xdata),
	  volume, loc, cmd, lock, xdata)
DELAY_FOP(finodelk, FINODELK,
	  (HEAD, const char *volume, fd_t *fd, int32_t cmd, struct gf_flock *lock, dict_t *xdata),
	  volume, fd, cmd, lock, xdata)

/* Behind what has been done below, on the thread that did it. */
static int32_t delay_reply(HEAD_CBK, int32_t op_ret, int32_t op_errno, struct iatt *before,
			   struct iatt *after, dict_t *xdata)
{
	delay_request(this, GF_FOP_WRITE);
	return default_writev_cbk(frame, cookie, this, op_ret, op_errno, before, after, xdata);
}

static int32_t delay_writev(HEAD, fd_t *fd, struct iovec *vector, int32_t count, off_t offset,
			    uint32_t flags, struct iobref *iobref, dict_t *xdata)
{
	const struct delay_conf *conf = this->private;

	if (!conf->late)
		delay_request(this, GF_FOP_WRITE);
	STACK_WIND(frame, conf->late ? delay_reply : default_writev_cbk, FIRST_CHILD(this),
		   FIRST_CHILD(this)->fops->writev, fd, vector, count, offset, flags, iobref,
		   xdata);
	return 0;
}

static const struct {
	const char *name; /* of the fops table, or as GlusterFS prints the fop */
	glusterfs_fop_t op;
} op_names[] = {
	{ "writev", GF_FOP_WRITE }, { "write", GF_FOP_WRITE },   { "readv", GF_FOP_READ },
	{ "read", GF_FOP_READ },    { "fsync", GF_FOP_FSYNC },   { "flush", GF_FOP_FLUSH },
	{ "open", GF_FOP_OPEN },    { "create", GF_FOP_CREATE }, { "lookup", GF_FOP_LOOKUP },
	{ "stat", GF_FOP_STAT },    { "fstat", GF_FOP_FSTAT },   { "unlink", GF_FOP_UNLINK },
	{ "mkdir", GF_FOP_MKDIR },  { "rename", GF_FOP_RENAME }, { "xattrop", GF_FOP_XATTROP },
};

/* The bit of one name of `ops`, 0 where the name is none of ours. */
static uint64_t op_bit(const char *name)
{
	size_t i;

	for (i = 0; i < sizeof(op_names) / sizeof(op_names[0]); i++)
		if (!strcmp(op_names[i].name, name))
			return 1ULL << op_names[i].op;
	return 0;
}

static int parse_ops(xlator_t *this, const char *list, uint64_t *ret_ops)
{
	char copy[256], *save = NULL, *name;
	uint64_t ops = 0;

	if (strlen(list) >= sizeof(copy))
		return -EINVAL;
	strcpy(copy, list);
	for (name = strtok_r(copy, ",", &save); name; name = strtok_r(NULL, ",", &save)) {
		if (!op_bit(name)) {
			gf_log(this->name, GF_LOG_ERROR, "unknown op '%s' in option ops", name);
			return -EINVAL;
		}
		ops |= op_bit(name);
	}
	*ret_ops = ops;
	return 0;
}

/* Maps the counters; without a file they are private memory. */
static int map_counters(xlator_t *this, const char *path, struct delay_conf *conf)
{
	int flags = MAP_SHARED, fd = -1;
	uint64_t *table;

	if (path) {
		fd = open(path, O_RDWR | O_CREAT, 0644);
		if (fd < 0 || ftruncate(fd, COUNTER_BYTES) < 0) {
			gf_log(this->name, GF_LOG_ERROR, "cannot make counter file '%s': %s", path,
			       strerror(errno));
			if (fd >= 0)
				close(fd);
			return -1;
		}
	} else {
		flags |= MAP_ANONYMOUS;
	}
	table = mmap(NULL, COUNTER_BYTES, PROT_READ | PROT_WRITE, flags, fd, 0);
	if (fd >= 0)
		close(fd);
	if (table == MAP_FAILED)
		return -1;
	conf->seen = table;
	conf->delayed = table + COUNTERS_PER_TABLE;
	return 0;
}

static int open_log(xlator_t *this, const char *path, struct delay_conf *conf)
{
	conf->log_fd = path ? open(path, O_WRONLY | O_CREAT | O_APPEND | O_CLOEXEC, 0644) : -1;
	if (!path || conf->log_fd >= 0)
		return 0;
	gf_log(this->name, GF_LOG_ERROR, "cannot make log file '%s': %s", path, strerror(errno));
	return -1;
}

static char *option_of(xlator_t *this, char *key)
{
	data_t *data = dict_get(this->options, key);

	return data ? data->data : NULL;
}

/* A plain decimal number, or what the option is when it is not given. */
static int option_number(xlator_t *this, char *key, uint64_t otherwise, uint64_t *ret_value)
{
	char *text = option_of(this, key), *end = NULL;

	*ret_value = otherwise;
	if (!text)
		return 0;
	*ret_value = strtoull(text, &end, 10);
	if (end != text && !*end)
		return 0;
	gf_log(this->name, GF_LOG_ERROR, "option %s wants a number, not '%s'", key, text);
	return -EINVAL;
}

static int32_t delay_init(xlator_t *this)
{
	struct delay_conf *conf;
	char *ops = option_of(this, "ops");

	if (!this->children || this->children->next) {
		gf_log(this->name, GF_LOG_ERROR, "needs exactly one subvolume");
		return -1;
	}
	conf = calloc(1, sizeof(*conf));
	if (!conf)
		return -1;
	conf->hold_file = option_of(this, "hold-file");
	if (option_number(this, "delay-us", 0, &conf->delay_us) ||
	    option_number(this, "delay-percent", 100, &conf->percent) ||
	    option_number(this, "delay-every", 0, &conf->every) ||
	    option_number(this, "delay-reply", 0, &conf->late) ||
	    open_log(this, option_of(this, "log-file"), conf) ||
	    parse_ops(this, ops ? ops : "writev,readv", &conf->ops) ||
	    map_counters(this, option_of(this, "counter-file"), conf)) {
		free(conf);
		return -1;
	}
	this->private = conf;
	return 0;
}

static void delay_fini(xlator_t *this)
{
	struct delay_conf *conf = this->private;

	if (!conf)
		return;
	this->private = NULL;
	munmap(conf->seen, COUNTER_BYTES);
	if (conf->log_fd >= 0)
		close(conf->log_fd);
	free(conf);
}

static struct xlator_fops delay_fops = {
	.lookup = delay_lookup,
	.stat = delay_stat,
	.fstat = delay_fstat,
	.statfs = delay_statfs,
	.access = delay_access,
	.open = delay_open,
	.create = delay_create,
	.readv = delay_readv,
	.writev = delay_writev,
	.flush = delay_flush,
	.fsync = delay_fsync,
	.truncate = delay_truncate,
	.ftruncate = delay_ftruncate,
	.opendir = delay_opendir,
	.readdir = delay_readdir,
	.readdirp = delay_readdirp,
	.mkdir = delay_mkdir,
	.rmdir = delay_rmdir,
	.unlink = delay_unlink,
	.rename = delay_rename,
	.setattr = delay_setattr,
	.fsetattr = delay_fsetattr,
	.setxattr = delay_setxattr,
	.getxattr = delay_getxattr,
	.fgetxattr = delay_fgetxattr,
	.xattrop = delay_xattrop,
	.fxattrop = delay_fxattrop,
	.inodelk = delay_inodelk,
	.finodelk = delay_finodelk,
};

static struct xlator_cbks delay_cbks;

static struct volume_options delay_options[] = {
	{ .key = { "delay-us" },
	  .type = GF_OPTION_TYPE_ANY,
	  .description = "sleep before winding" },
	{ .key = { "delay-percent" }, .type = GF_OPTION_TYPE_ANY, .description = "share delayed" },
	{ .key = { "delay-every" },
	  .type = GF_OPTION_TYPE_ANY,
	  .description = "delay one of so many instead" },
	{ .key = { "delay-reply" },
	  .type = GF_OPTION_TYPE_ANY,
	  .description = "1: of writes not before winding, but before unwinding" },
	{ .key = { "log-file" },
	  .type = GF_OPTION_TYPE_STR,
	  .description = "begin, end and fop of each delay" },
	{ .key = { "ops" },
	  .type = GF_OPTION_TYPE_STR,
	  .description = "fops, separated by commas" },
	{ .key = { "hold-file" },
	  .type = GF_OPTION_TYPE_STR,
	  .description = "hold while it exists" },
	{ .key = { "counter-file" }, .type = GF_OPTION_TYPE_STR, .description = "see the head" },
	{ .key = { NULL } },
};

xlator_api_t xlator_api = {
	.init = delay_init,
	.fini = delay_fini,
	.op_version = { 1 },
	.fops = &delay_fops,
	.cbks = &delay_cbks,
	.options = delay_options,
	.identifier = "delay",
	.category = GF_EXPERIMENTAL,
};
