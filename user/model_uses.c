/* SPDX-License-Identifier: Apache-2.0 */
/*
 * model_uses.c: see model_uses.h. Owns the rows as they were fed, what the window has added to
 * each, and how much slower than the others one file is.
 */
#include "model_uses.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "model_priv.h"

#define FIRST_ROWS   256
#define NO_ROW       0xffffffffU
#define ENOUGH_OTHER 20 /* requests of a class that others must have made, to compare with */

/* More than the programs keep: what they push out stays as long as there is room. */
static const size_t kept_rows[MODEL_USE_TABLES] = { WIRE_FILES, WIRE_APPS };

struct use_row {
	struct wire_use_key key;
	struct wire_use last, win; /* win.max_ns: 0 where the window did not raise it */
	bool seen, gone;           /* in this feed; not in the last one */
};

struct model_uses {
	struct use_row *rows;
	size_t n, cap;
	uint32_t *index; /* open addressing: number of the row, or NO_ROW */
	size_t index_cap;
	uint64_t live[WIRE_MAX_TARGETS];   /* rows that the programs have, by the feed under way */
	uint64_t pushed[WIRE_MAX_TARGETS]; /* rows that they have pushed out so far, ... */
	uint64_t before[WIRE_MAX_TARGETS]; /* ... and until the window began */
};

/* ---- the table --------------------------------------------------------- */

/* Where a key's number is, or belongs: the index is never full. */
static uint32_t *find_place(const struct model_uses *u, const struct wire_use_key *key)
{
	size_t at = model_hash(key, sizeof(*key)) & (u->index_cap - 1);

	while (u->index[at] != NO_ROW && memcmp(&u->rows[u->index[at]].key, key, sizeof(*key)) != 0)
		at = (at + 1) & (u->index_cap - 1);
	return &u->index[at];
}

static void fill_index(struct model_uses *u)
{
	memset(u->index, 0xff, u->index_cap * sizeof(*u->index));
	for (size_t i = 0; i < u->n; i++)
		*find_place(u, &u->rows[i].key) = (uint32_t)i;
}

static int grow(struct model_uses *u)
{
	size_t cap = u->cap ? 2 * u->cap : FIRST_ROWS;
	struct use_row *rows = realloc(u->rows, cap * sizeof(*rows));
	uint32_t *index;

	if (!rows)
		return -ENOMEM;
	u->rows = rows;
	index = realloc(u->index, 2 * cap * sizeof(*index));
	if (!index)
		return -ENOMEM;
	u->index = index;
	u->cap = cap;
	u->index_cap = 2 * cap;
	fill_index(u);
	return 0;
}

static double total_ns(const struct wire_use *use)
{
	double sum = 0;

	for (unsigned int c = 0; c < WIRE_USE_CLASSES; c++)
		sum += (double)use->sum_ns[c];
	return sum;
}

static uint64_t total_count(const struct wire_use *use)
{
	uint64_t n = 0;

	for (unsigned int c = 0; c < WIRE_USE_CLASSES; c++)
		n += use->count[c];
	return n;
}

/* Those that are still in the programs' table first, then the dearest. */
static int by_worth(const void *pa, const void *pb)
{
	const struct use_row *a = pa, *b = pb;
	double x = total_ns(&a->win), y = total_ns(&b->win);

	if (a->gone != b->gone)
		return a->gone ? 1 : -1;
	return x < y ? 1 : x > y ? -1 : 0;
}

/*
 * Room again for as many as the programs can have made anew by the next feed: of what they do not
 * have any more, the least goes.
 */
static void shrink(struct model_uses *u, size_t kept)
{
	if (u->n <= 2 * kept)
		return;
	qsort(u->rows, u->n, sizeof(*u->rows), by_worth);
	while (u->n > kept && u->rows[u->n - 1].gone)
		u->n--;
	fill_index(u);
}

/* ---- feeding ----------------------------------------------------------- */

static void fold(struct use_row *row, const struct wire_use *now)
{
	static const struct wire_use none;
	const struct wire_use *last = row->last.born_ns == now->born_ns ? &row->last : &none;

	for (unsigned int c = 0; c < WIRE_USE_CLASSES; c++) {
		row->win.count[c] += now->count[c] - last->count[c];
		row->win.sum_ns[c] += now->sum_ns[c] - last->sum_ns[c];
	}
	row->win.bytes += now->bytes - last->bytes;
	row->win.errors += now->errors - last->errors;
	if (now->max_ns > last->max_ns && now->max_ns > row->win.max_ns)
		row->win.max_ns = now->max_ns;
	row->last = *now;
	row->seen = true;
	row->gone = false;
}

static struct model_uses *get_table(struct model *m, enum model_use_table table)
{
	if (!m->uses[table])
		m->uses[table] = calloc(1, sizeof(*m->uses[table]));
	return m->uses[table];
}

/* A new row at the end; NULL: no memory. */
static struct use_row *add_row(struct model_uses *u, const struct wire_use_key *key)
{
	struct use_row *row;

	if (u->n == u->cap && grow(u))
		return NULL;
	row = &u->rows[u->n];
	*row = (struct use_row){ .key = *key };
	*find_place(u, key) = (uint32_t)u->n++;
	return row;
}

int model_feed_use(struct model *m, enum model_use_table table, const struct wire_use_key *key,
		   const struct wire_use *use)
{
	struct model_uses *u = get_table(m, table);
	struct use_row *row = NULL;
	uint32_t at;

	if (key->target >= WIRE_MAX_TARGETS || !m->targets[key->target])
		return -ENOENT;
	if (!u || (!u->cap && grow(u)))
		return -ENOMEM;
	u->live[key->target]++;
	at = *find_place(u, key);
	if (at != NO_ROW) {
		row = &u->rows[at];
	} else if (u->n < 3 * kept_rows[table]) {
		row = add_row(u, key);
		if (!row)
			return -ENOMEM;
	}
	/* one too many cannot be: there is room for all that the programs have, see shrink() */
	if (row)
		fold(row, use);
	return 0;
}

/* Rows that were made since they were counted only make it too few until the next feed. */
static void count_pushed(struct model_uses *u, const uint64_t made[WIRE_MAX_TARGETS])
{
	for (unsigned int i = 0; i < WIRE_MAX_TARGETS; i++)
		if (made[i] > u->live[i] + u->pushed[i])
			u->pushed[i] = made[i] - u->live[i];
	memset(u->live, 0, sizeof(u->live));
}

void model_feed_uses_end(struct model *m, enum model_use_table table,
			 const uint64_t made[WIRE_MAX_TARGETS])
{
	struct model_uses *u = get_table(m, table);

	if (!u)
		return;
	for (size_t i = 0; i < u->n; i++) {
		struct use_row *row = &u->rows[i];

		row->gone = !row->seen;
		row->seen = false;
	}
	count_pushed(u, made);
	shrink(u, kept_rows[table]);
}

void model_uses_start(struct model_uses *u)
{
	if (!u)
		return;
	memcpy(u->before, u->pushed, sizeof(u->before));
	for (size_t i = 0; i < u->n; i++)
		memset(&u->rows[i].win, 0, sizeof(u->rows[i].win));
}

void model_uses_free(struct model_uses *u)
{
	if (!u)
		return;
	free(u->rows);
	free(u->index);
	free(u);
}

/* ---- a target's tables of the window ----------------------------------- */

/* Those of one target that were used in the window, dearest first. */
struct use_list {
	const struct use_row **rows;
	size_t n;
	struct wire_use sum; /* of all of them */
	double known_ns;     /* of those that are known files, or applications */
	double requests_ns;  /* all of the target's requests, by its operations */
};

static int by_total(const void *pa, const void *pb)
{
	const struct use_row *const *a = pa, *const *b = pb;
	double x = total_ns(&(*a)->win), y = total_ns(&(*b)->win);

	if (x < y || x > y)
		return x < y ? 1 : -1;
	return memcmp(&(*a)->key, &(*b)->key, sizeof((*a)->key));
}

static void add_use(struct wire_use *sum, const struct wire_use *use)
{
	for (unsigned int c = 0; c < WIRE_USE_CLASSES; c++) {
		sum->count[c] += use->count[c];
		sum->sum_ns[c] += use->sum_ns[c];
	}
}

static int list_uses(const struct model_uses *u, unsigned int target, double requests_ns,
		     struct use_list *l)
{
	*l = (struct use_list){ .requests_ns = requests_ns };
	l->rows = calloc(u->n + 1, sizeof(*l->rows));
	if (!l->rows)
		return -ENOMEM;
	for (size_t i = 0; i < u->n; i++) {
		const struct use_row *row = &u->rows[i];

		if (row->key.target != target || !total_count(&row->win))
			continue;
		add_use(&l->sum, &row->win);
		if (!row->key.kind)
			continue;
		l->known_ns += total_ns(&row->win);
		l->rows[l->n++] = row;
	}
	qsort(l->rows, l->n, sizeof(*l->rows), by_total);
	return 0;
}

static struct snap_num share(double part, double whole)
{
	return (struct snap_num){ whole > 0 ? 100 * part / whole : 0, whole > 0 };
}

static void fill_use(const struct use_list *l, const struct wire_use *use, struct snap_use *su)
{
	su->count = total_count(use);
	su->reads = use->count[WIRE_USE_READ];
	su->writes = use->count[WIRE_USE_WRITE];
	su->syncs = use->count[WIRE_USE_SYNC];
	su->bytes = use->bytes;
	su->errors = use->errors;
	su->total_ns = total_ns(use);
	su->max_ns = (struct snap_num){ (double)use->max_ns, use->max_ns > 0 };
	su->share_pct = share(su->total_ns, l->requests_ns);
}

/*
 * How much longer a file's requests took than the same reads, writes, syncs and others of all the
 * other files would have. Not where these made too few to tell.
 */
static struct snap_num slowdown(const struct use_list *l, const struct wire_use *use)
{
	double own = 0, expected = 0;

	for (unsigned int c = 0; c < WIRE_USE_CLASSES; c++) {
		uint64_t others = l->sum.count[c] - use->count[c];

		if (!use->count[c] || others < ENOUGH_OTHER)
			continue;
		own += (double)use->sum_ns[c];
		expected += (double)use->count[c] * (double)(l->sum.sum_ns[c] - use->sum_ns[c]) /
			    (double)others;
	}
	/* of most of its time, or it says nothing of the file */
	if (!(expected > 0) || own < total_ns(use) / 2)
		return (struct snap_num){ 0 };
	return (struct snap_num){ own / expected, true };
}

static void fill_app_id(const uint8_t id[16], struct snap_app *app)
{
	struct wire_app a;

	memcpy(&a, id, sizeof(a));
	app->pid = a.pid;
	app->uid = a.uid;
	app->client_addr = a.client;
}

static void fill_file(const struct use_list *l, const struct use_row *row, struct snap_file *f)
{
	fill_use(l, &row->win, &f->use);
	f->kind = (enum snap_file_kind)row->key.kind;
	memcpy(f->id, row->key.id, sizeof(f->id));
	f->slowdown = slowdown(l, &row->win);
	fill_app_id(row->last.last, &f->last);
}

static size_t shown(size_t n)
{
	return n < SNAP_MAX_FILES ? n : SNAP_MAX_FILES;
}

static int build_files(const struct model_uses *u, unsigned int target, double requests_ns,
		       struct snap_target *st)
{
	struct use_list l;
	int err = list_uses(u, target, requests_ns, &l);

	if (err)
		return err;
	st->files = calloc(shown(l.n) + 1, sizeof(*st->files));
	for (size_t i = 0; st->files && i < shown(l.n); i++)
		fill_file(&l, l.rows[i], &st->files[st->n_files++]);
	st->n_all_files = l.n;
	st->files_pct = share(l.known_ns, requests_ns);
	st->files_pushed = u->pushed[target] - u->before[target];
	free(l.rows);
	return st->files ? 0 : -ENOMEM;
}

static int build_apps(const struct model_uses *u, unsigned int target, double requests_ns,
		      struct snap_target *st)
{
	struct use_list l;
	int err = list_uses(u, target, requests_ns, &l);

	if (err)
		return err;
	st->apps = calloc(shown(l.n) + 1, sizeof(*st->apps));
	for (size_t i = 0; st->apps && i < shown(l.n); i++) {
		struct snap_app *app = &st->apps[st->n_apps++];

		fill_use(&l, &l.rows[i]->win, &app->use);
		fill_app_id(l.rows[i]->key.id, app);
		app->born_ns = l.rows[i]->last.born_ns;
		memcpy(app->thread, l.rows[i]->last.last, sizeof(app->thread) - 1);
	}
	st->n_all_apps = l.n;
	st->apps_pct = share(l.known_ns, requests_ns);
	st->apps_pushed = u->pushed[target] - u->before[target];
	free(l.rows);
	return st->apps ? 0 : -ENOMEM;
}

/* The time of what is in the tables: requests that others wait for, a plain process's calls. */
static double requests_ns(const struct model_tgt *t, const struct snap_target *st)
{
	const char *local = model_root_name(WIRE_ROOT_LOCAL);
	const char *background = model_root_name(WIRE_ROOT_BACKGROUND);
	bool plain = t->root == WIRE_ROOT_LOCAL;
	double sum = 0;

	for (size_t i = 0; i < st->n_ops; i++) {
		const struct snap_op *op = &st->ops[i];

		if (op->source == SNAP_FROM_WALK && op->incl.valid &&
		    plain == !strcmp(op->root, local) && strcmp(op->root, background) != 0)
			sum += op->incl.mean * (double)op->count;
	}
	return sum;
}

int model_uses_build(const struct model *m, unsigned int target, struct snap_target *st)
{
	double all_ns = requests_ns(m->targets[target], st);
	int err = 0;

	st->has_files = m->uses[MODEL_FILES] != NULL;
	if (m->uses[MODEL_FILES])
		err = build_files(m->uses[MODEL_FILES], target, all_ns, st);
	if (!err && m->uses[MODEL_APPS])
		err = build_apps(m->uses[MODEL_APPS], target, all_ns, st);
	return err;
}

void model_uses_free_snapshot(struct snap_target *st)
{
	free(st->files);
	free(st->dirs);
	free(st->apps);
}

/* ---- directories ------------------------------------------------------- */

/* The directory that a file's time is of, into dir; false where it is not known. */
static bool find_dir(const struct snap_file *f, char *dir, size_t size)
{
	char *slash;

	if (f->path[0] != '/')
		return false;
	model_text_set(dir, size, f->path);
	if (f->kind == SNAP_FILE_ENTRY || f->is_dir)
		return true;
	slash = strrchr(dir, '/');
	slash[slash == dir] = '\0';
	return true;
}

static void join_use(struct snap_use *sum, const struct snap_use *use)
{
	sum->count += use->count;
	sum->reads += use->reads;
	sum->writes += use->writes;
	sum->syncs += use->syncs;
	sum->bytes += use->bytes;
	sum->errors += use->errors;
	sum->total_ns += use->total_ns;
	sum->share_pct.v += use->share_pct.v;
	sum->share_pct.valid = use->share_pct.valid;
	if (use->max_ns.valid && (!sum->max_ns.valid || use->max_ns.v > sum->max_ns.v))
		sum->max_ns = use->max_ns;
}

static int by_dir_total(const void *pa, const void *pb)
{
	const struct snap_dir *a = pa, *b = pb;

	if (a->use.total_ns < b->use.total_ns || a->use.total_ns > b->use.total_ns)
		return a->use.total_ns < b->use.total_ns ? 1 : -1;
	return strcmp(a->path, b->path);
}

int model_group_dirs(struct snap_target *t)
{
	char path[sizeof(t->dirs->path)];
	size_t k;

	free(t->dirs);
	t->n_dirs = 0;
	t->dirs_pct = (struct snap_num){ 0, t->files_pct.valid };
	t->dirs = calloc(t->n_files + 1, sizeof(*t->dirs));
	if (!t->dirs)
		return -ENOMEM;
	for (size_t i = 0; i < t->n_files; i++) {
		const struct snap_file *f = &t->files[i];

		if (!find_dir(f, path, sizeof(path)))
			continue;
		for (k = 0; k < t->n_dirs && strcmp(t->dirs[k].path, path) != 0; k++)
			;
		if (k == t->n_dirs)
			model_text_set(t->dirs[t->n_dirs++].path, sizeof(path), path);
		t->dirs[k].n_files += f->kind == SNAP_FILE_GFID && !f->is_dir;
		join_use(&t->dirs[k].use, &f->use);
		t->dirs_pct.v += f->use.share_pct.v;
	}
	qsort(t->dirs, t->n_dirs, sizeof(*t->dirs), by_dir_total);
	return 0;
}
