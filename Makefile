# SPDX-License-Identifier: Apache-2.0
#
# The one Makefile of bricktop. Everything is built out of tree, under O (build).
# Sources are found by wildcard: a new user/x.c, bpf/x.bpf.c, tests/unit/test_x.c
# or tests/fuzz/fuzz_x.c needs no line here.
#
# Variables: O=dir  V=1 (show commands)  WERROR=0  CC= CLANG= BPFTOOL=
#            prefix= bindir= mandir= DESTDIR=  TESTS="file..." (make check)

O       ?= build
V       ?= 0
WERROR  ?= 1
prefix  ?= /usr/local
bindir  ?= $(prefix)/bin
mandir  ?= $(prefix)/share/man
DESTDIR ?=

.DELETE_ON_ERROR:
.SUFFIXES:
.SECONDARY:
.DEFAULT_GOAL := all

# bpftool lies in sbin on Debian, which a user's PATH may lack.
export PATH := $(PATH):/usr/local/sbin:/usr/sbin:/sbin

ifeq ($(origin CC),default)
CC := gcc
endif
CLANG       ?= clang
BPFTOOL     ?= bpftool
PKG_CONFIG  ?= pkg-config
CTAGS       ?= ctags

ifeq ($(V),1)
Q   :=
say := @:
else
Q   := @
say = @printf '  %-8s %s\n'
endif

# The architecture as the kernel names it, and the other one we keep compiling.
ARCH := $(patsubst x86_64,x86,$(patsubst aarch64,arm64,$(shell uname -m)))
BPF_ARCHES := x86 arm64

# --- sources ------------------------------------------------------------------
BPF_SRCS  := $(wildcard bpf/*.bpf.c)
BPF_NAMES := $(BPF_SRCS:bpf/%.bpf.c=%)
SKELS     := $(BPF_NAMES:%=$(O)/%.skel.h)
USER_SRCS := $(wildcard user/*.c user/tui/*.c)
LIB_SRCS  := $(filter-out user/main.c,$(USER_SRCS))
UNIT_SRCS := $(wildcard tests/unit/test_*.c)
FUZZ_SRCS := $(wildcard tests/fuzz/fuzz_*.c)
# Programs that tests run: plain C, not linked with ours.
PROG_SRCS   := $(wildcard tests/lib/*.c tests/bench/*.c)
MAN_PAGES   := $(wildcard user/*.8)

BRICKTOP := $(O)/bricktop
UNIT     := $(UNIT_SRCS:tests/unit/%.c=$(O)/tests/unit/%)
UNIT_SAN := $(UNIT_SRCS:tests/unit/%.c=$(O)/san/tests/unit/%)
FUZZ     := $(FUZZ_SRCS:tests/fuzz/%.c=$(O)/fuzz/%)
PROGS    := $(PROG_SRCS:%.c=$(O)/%)
BPF_ALL  := $(foreach a,$(BPF_ARCHES),$(BPF_NAMES:%=$(O)/bpf/$(a)/%.bpf.o))
E2E      := $(wildcard tests/e2e/*.sh)

# --- flags --------------------------------------------------------------------
PKGS       := libbpf libelf capstone jansson zlib
PKG_CFLAGS := $(shell $(PKG_CONFIG) --cflags-only-other $(PKGS) 2>/dev/null)
PKG_INCS   := $(patsubst -I%,-isystem %,$(filter -I%,$(shell $(PKG_CONFIG) --cflags $(PKGS) 2>/dev/null)))
PKG_LIBS   := $(shell $(PKG_CONFIG) --libs $(PKGS) 2>/dev/null)
LIBS       := $(or $(PKG_LIBS),-lbpf -lelf -lcapstone -ljansson -lz) -lpthread -lm $(LDLIBS)

WARNINGS := -Wall -Wextra -Wshadow -Wvla -Wstrict-prototypes -Wmissing-prototypes \
	-Wwrite-strings -Wformat=2 -Wundef -fno-common
ifneq ($(WERROR),0)
WARNINGS += -Werror
endif

CFLAGS   ?= -O2 -g
INCLUDES := -I$(O) -Iuser -I. $(PKG_INCS)
COMMON   := -std=gnu11 -D_GNU_SOURCE $(WARNINGS) -ffile-prefix-map=$(CURDIR)=. $(INCLUDES) \
	$(PKG_CFLAGS) $(CPPFLAGS)
ALL_CFLAGS := $(COMMON) -D_FORTIFY_SOURCE=2 -fstack-protector-strong $(CFLAGS)

BPF_CFLAGS := -g -O2 -mcpu=v3 -target bpf -Wall -Wextra -Wno-unused-parameter \
	-Wno-missing-declarations -ffile-prefix-map=$(CURDIR)=. -Ibpf
ifneq ($(WERROR),0)
BPF_CFLAGS += -Werror
endif

# Variants of the same sources: one compiler and one set of flags each.
CC_rel       := $(CC)
FLAGS_rel    := $(ALL_CFLAGS)
CC_san       := $(CC)
FLAGS_san    := $(COMMON) -O1 -g -fno-omit-frame-pointer -fsanitize=address,undefined \
	-fno-sanitize-recover=all
CC_cov       := $(CC)
FLAGS_cov    := $(COMMON) -O0 -g --coverage
CC_fuzz      := $(CLANG)
FLAGS_fuzz   := $(COMMON) -O1 -g -fno-omit-frame-pointer \
	-fsanitize=fuzzer-no-link,address,undefined -fno-sanitize-recover=all

# Test programs that look into GlusterFS: the definitions its own build uses, or
# gf_atomic_t becomes a locked struct and every offset is wrong.
GLUSTER_CFLAGS := -std=gnu11 -O2 -g -Wall -D_GNU_SOURCE -D_FILE_OFFSET_BITS=64 \
	-DGF_LINUX_HOST_OS=1 -DHAVE_ATOMIC_BUILTINS=1 -DSIZEOF_LONG=8 \
	-isystem /usr/include/glusterfs

# The tag's distance, or before the first tag the VERSION file and the commit; a
# release tarball, which has no .git, has the VERSION file alone.
VERSION := $(or $(shell git -c safe.directory='*' describe --tags --match 'v*' --dirty 2>/dev/null),$(strip \
	$(file < VERSION)$(addprefix +g,$(shell git -c safe.directory='*' rev-parse --short HEAD 2>/dev/null))))
VERSION_SRCS := $(shell grep -ls BRICKTOP_VERSION $(USER_SRCS) /dev/null)

# $(call stamp,FILE,TEXT): FILE changes only when TEXT does.
stamp = $(shell mkdir -p $(dir $1); printf '%s\n' '$2' | cmp -s - $1 || printf '%s\n' '$2' >$1)
ifneq ($(filter-out help clean setup,$(or $(MAKECMDGOALS),all)),)
$(call stamp,$(O)/flags.stamp,$(CC) $(CLANG) $(ALL_CFLAGS) $(BPF_CFLAGS) $(LIBS))
$(call stamp,$(O)/version.stamp,$(VERSION))
endif

# --- build --------------------------------------------------------------------
## all: build bricktop (the default)
.PHONY: all
all: $(if $(wildcard user/main.c),$(BRICKTOP),$(O)/rel/libbricktop.a)

# BPF: compile, then link (drops what the loader does not need), then embed.
define bpf_rule
$(O)/bpf/$(1)/%.bpf.o: bpf/%.bpf.c $(O)/flags.stamp | $(O)/bpf/$(1)/
	$(say) CLANG 'bpf/$$*.bpf.c ($(1))'
	$(Q)$(CLANG) $(BPF_CFLAGS) -D__TARGET_ARCH_$(1) -Ivmlinux/$(1) \
		-MMD -MP -MF $$(@:.o=.d) -MT $$@ -c $$< -o $$@
endef
$(foreach a,$(BPF_ARCHES),$(eval $(call bpf_rule,$(a))))

$(O)/bpf/%.linked.o: $(O)/bpf/$(ARCH)/%.bpf.o
	$(say) LINK '$*.bpf.o'
	$(Q)$(BPFTOOL) gen object $@ $<

# bpftool writes to stdout only; .DELETE_ON_ERROR removes a half-written header.
$(O)/%.skel.h: $(O)/bpf/%.linked.o
	$(say) SKEL '$*.skel.h'
	$(Q){ echo '/* NOLINTBEGIN: generated */'; $(BPFTOOL) gen skeleton $< name $* && \
	echo '/* NOLINTEND */'; } >$@

# All objects as a table, so that a new layer's object needs no line of code.
$(O)/objects.h: Makefile $(SKELS)
	$(say) GEN 'objects.h'
	$(Q){ printf '#include "%s.skel.h"\n' $(BPF_NAMES); \
	echo 'static const struct embedded_object objects[] = {'; \
	printf '\t{ "%s", %s__elf_bytes },\n' $(foreach n,$(BPF_NAMES),$(n) $(n)); \
	echo '};'; } >$@

define variant_rules
$(O)/$(1)/%.o: %.c $(O)/flags.stamp | $(SKELS) $(O)/objects.h
	$$(say) CC '$$<$(if $(filter rel,$(1)),, ($(1)))'
	$(Q)mkdir -p $$(@D)
	$(Q)$$(CC_$(1)) $$(FLAGS_$(1)) -Itests $$(DEFINES) -MMD -MP -c $$< -o $$@

$(VERSION_SRCS:%.c=$(O)/$(1)/%.o): DEFINES := -DBRICKTOP_VERSION='"$(VERSION)"'
$(VERSION_SRCS:%.c=$(O)/$(1)/%.o): $(O)/version.stamp

$(O)/$(1)/libbricktop.a: $(LIB_SRCS:%.c=$(O)/$(1)/%.o)
	$$(say) AR '$$@'
	$(Q)mkdir -p $$(@D)
	$(Q)rm -f $$@
	$(Q)ar rcsD $$@ $$^
endef
$(foreach v,rel san cov fuzz,$(eval $(call variant_rules,$(v))))

$(BRICKTOP): $(O)/rel/user/main.o $(O)/rel/libbricktop.a
	$(say) LD '$@'
	$(Q)$(CC) $(FLAGS_rel) $(LDFLAGS) -o $@ $^ $(LIBS)

# unit_rule VARIANT DIRECTORY: a unit test is its own file and everything but main.
define unit_rule
$(2)/%: $(O)/$(1)/tests/unit/%.o $(O)/$(1)/libbricktop.a
	$$(say) LD '$$@'
	$(Q)mkdir -p $$(@D)
	$(Q)$$(CC_$(1)) $$(FLAGS_$(1)) $$(LDFLAGS) -o $$@ $$^ $$(LIBS)
endef
$(eval $(call unit_rule,rel,$(O)/tests/unit))
$(eval $(call unit_rule,san,$(O)/san/tests/unit))
$(eval $(call unit_rule,cov,$(O)/cov/tests/unit))

$(O)/fuzz/fuzz_%: $(O)/fuzz/tests/fuzz/fuzz_%.o $(O)/fuzz/libbricktop.a
	$(say) LD '$@'
	$(Q)$(CLANG) $(FLAGS_fuzz) -fsanitize=fuzzer -o $@ $^ $(LIBS)

$(PROGS): $(O)/%: %.c
	$(say) CC '$< (test program)'
	$(Q)mkdir -p $(@D)
	$(Q)$(CC) $(GLUSTER_CFLAGS) -MMD -MP -MF $@.d -o $@ $< -lglusterfs -lpthread

$(O)/bpf/%/:
	$(Q)mkdir -p $@

-include $(foreach v,rel san cov fuzz,$(USER_SRCS:%.c=$(O)/$(v)/%.d))
-include $(foreach v,rel san cov,$(UNIT_SRCS:%.c=$(O)/$(v)/%.d))
-include $(FUZZ_SRCS:%.c=$(O)/fuzz/%.d) $(BPF_ALL:.o=.d) $(PROGS:=.d)

# --- tests --------------------------------------------------------------------
export BRICKTOP_BUILD := $(abspath $(O))
export BED_XLATORS := $(BRICKTOP_BUILD)/xlators
RUN := BRICKTOP=$(abspath $(BRICKTOP)) tools/run-tests

## setup: install what building and testing need (root, Debian; else says what is missing)
.PHONY: setup
setup:
	$(Q)tools/setup

# A sub-make, so that what setup installed is seen by the variables above.
## check: everything: build, lint, unit tests, sanitizers, fuzz corpora, end-to-end
.PHONY: check
check: setup
	$(Q)+$(MAKE) --no-print-directory WERROR=1 check-all

.PHONY: check-all check-build
check-build: all bpf-all unit unit-san fuzzers progs
check-all: check-build
ifneq ($(TESTS),)
	$(Q)$(RUN) $(TESTS)
else
	$(Q)$(RUN) --skips tests/skips.list tests/lint.sh $(UNIT) $(UNIT_SAN) $(FUZZ) $(E2E)
endif

## check-unit: the part of check that needs neither root nor GlusterFS
.PHONY: check-unit
check-unit: unit unit-san
	$(Q)$(RUN) $(UNIT) $(UNIT_SAN)

## check-root: the part of check that needs root: end-to-end tests on real bricks
.PHONY: check-root
check-root: all progs
	$(Q)$(RUN) $(E2E)

.PHONY: unit unit-san fuzzers progs bpf-all
unit: $(UNIT)
unit-san: $(UNIT_SAN)
fuzzers: $(FUZZ)
progs: $(PROGS)
	$(Q)tests/lib/build-xlator.sh $(BED_XLATORS)
bpf-all: $(BPF_ALL)

## fuzz: run every fuzzer for FUZZ_SECS (60) with a fresh seed
FUZZ_SECS ?= 60
.PHONY: fuzz
fuzz: fuzzers
	$(Q)set -e; for f in $(FUZZ); do tools/fuzz run $$f $(FUZZ_SECS); done

## bench: measure bricktop's cost and growth (minutes; needs root)
.PHONY: bench
bench: all progs
	$(Q)BRICKTOP=$(abspath $(BRICKTOP)) tools/bench $(BENCH)

## soak: fuzzers and unit tests again and again with fresh seeds, SOAK_SECS (3600)
SOAK_SECS ?= 3600
.PHONY: soak
soak: all unit-san fuzzers progs
	$(Q)BRICKTOP=$(abspath $(BRICKTOP)) tools/soak $(SOAK_SECS) $(UNIT_SAN) -- $(FUZZ)

## matrix: live bricks of other GlusterFS versions, and other kernels (downloads packages)
.PHONY: matrix
matrix: all $(O)/tests/unit/test_load
	$(Q)BRICKTOP=$(abspath $(BRICKTOP)) tools/matrix

## golden: rewrite the golden files; review the difference
.PHONY: golden
golden: unit
	$(Q)set -e; for t in $(UNIT); do GOLDEN_REWRITE=1 $$t >/dev/null; done
	$(Q)git --no-pager diff --stat -- tests/golden

## lint: clang-format, clang-tidy, shellcheck, mandoc, layering, gcc -fanalyzer
.PHONY: lint
lint: $(SKELS) compile_commands.json
	$(Q)LINT=full tools/run-tests tests/lint.sh

## format: let clang-format (14) rewrite the C sources
.PHONY: format
format:
	$(Q)clang-format -i $(wildcard user/*.[ch] user/tui/*.[ch] bpf/*.[ch] tests/*.h \
		tests/*/*.[ch] tools/*.[ch])

## coverage: lines that the unit tests reach, per source file
.PHONY: coverage
coverage: $(UNIT_SRCS:tests/unit/%.c=$(O)/cov/tests/unit/%)
	$(Q)tools/coverage $(O)/cov $^

# --- the rest -----------------------------------------------------------------
## compile_commands.json: for editors and clang-tidy
compile_commands.json: Makefile $(USER_SRCS) $(UNIT_SRCS) $(FUZZ_SRCS)
	$(say) GEN '$@'
	$(Q)for f in $(USER_SRCS) $(UNIT_SRCS) $(FUZZ_SRCS); do \
		jq -n --arg d '$(CURDIR)' --arg f "$$f" \
			--arg c '$(CC) $(ALL_CFLAGS) -Itests -DBRICKTOP_VERSION="\"dev\"" -c '"$$f" \
			'{directory: $$d, file: $$f, command: $$c}'; \
	done | jq -s . >$@

## vmlinux: write the pinned kernel headers anew (this kernel for x86, Debian's for arm64)
.PHONY: vmlinux
vmlinux:
	$(Q)tools/gen-vmlinux

## demo: a real brick under load, and bricktop's report of it (root)
.PHONY: demo
demo: setup
	$(Q)+$(MAKE) --no-print-directory all
	$(Q)tools/demo $(abspath $(BRICKTOP))

## install: into DESTDIR, prefix (/usr/local), bindir, mandir
.PHONY: install uninstall
install: $(BRICKTOP)
	install -D -m 0755 $(BRICKTOP) $(DESTDIR)$(bindir)/bricktop
	$(if $(MAN_PAGES),install -d $(DESTDIR)$(mandir)/man8)
	$(if $(MAN_PAGES),install -m 0644 $(MAN_PAGES) $(DESTDIR)$(mandir)/man8/)

## uninstall: remove what install put there
uninstall:
	rm -f $(DESTDIR)$(bindir)/bricktop
	rm -f $(MAN_PAGES:user/%=$(DESTDIR)$(mandir)/man8/%)

## clean: remove the build folder
.PHONY: clean
clean:
	$(Q)rm -rf $(O) compile_commands.json

## help: this list
.PHONY: help
help:
	@sed -n 's/^## \([a-z_.-]*\): */\1\t/p' Makefile | sort | \
		while IFS="$$(printf '\t')" read -r t d; do printf '  %-22s %s\n' "make $$t" "$$d"; done
