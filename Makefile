# gpuir: ranked text search in one C header. `make help` lists the targets; everything built goes to build/.

# What can be set: make CC=clang CFLAGS='-O2 -march=native' PREFIX=$HOME/.local GPU=0 V=1
B        = build#       the folder for everything built
CFLAGS   ?= -O3 -g
CXXFLAGS ?= $(CFLAGS)
CPPFLAGS ?=
LDFLAGS  ?=
PREFIX   ?= /usr/local
BINDIR   ?= $(PREFIX)/bin
INCLUDEDIR ?= $(PREFIX)/include
LIBDIR   ?= $(PREFIX)/lib
MANDIR   ?= $(PREFIX)/share/man
SHAREDIR ?= $(PREFIX)/share
DESTDIR  ?=
CLANG    ?= clang#      for the fuzzers
JOBS     ?= $(shell nproc 2>/dev/null || echo 2)
COMMIT   ?= $(if $(wildcard .git),$(shell git describe --always --dirty --exclude='*' 2>/dev/null))# in measurements

# gpuir.h and gpuir_cuda.cu are made from their rooms before anything reads them. Where it is not known which side was
# edited, make stops here.
ROOMS_STAMP = build/header.stamp# whatever B is: it tells of the tree
ifeq ($(filter join split clean help,$(MAKECMDGOALS)),)
ifneq ($(shell tools/scripts/rooms.sh header $(ROOMS_STAMP) >&2 && echo made),made)
$(error stopped before anything was built)
endif
endif

WARNINGS = -Wall -Wextra -Wpedantic -Wconversion -Wshadow
VERSION := $(shell sed -n 's/^\#define GPUIR_VERSION_\(MAJOR\|MINOR\|PATCH\) //p' gpuir.h | paste -sd.)
# Programs find the library by this part of the version, up to which it promises to keep what they were built with.
SO_MAJOR = $(if $(filter 0.%,$(VERSION)),$(basename $(VERSION)),$(firstword $(subst ., ,$(VERSION))))

# ---- what this machine has ---------------------------------------------------------------------------------------

header = $(shell printf '\043include <%s>\n' $(1) | $(CC) $(CPPFLAGS) $(2) -E -x c - >/dev/null 2>&1 && echo yes)

FUSE_CFLAGS := $(shell pkg-config --cflags fuse3 2>/dev/null || echo -I/usr/include/fuse3)
FUSE_LIBS   := $(shell pkg-config --libs fuse3 2>/dev/null || echo -lfuse3)
HAVE_FUSE   := $(call header,fuse_lowlevel.h,$(FUSE_CFLAGS) -DFUSE_USE_VERSION=35 -D_FILE_OFFSET_BITS=64)
HAVE_CXX    := $(shell command -v $(firstword $(CXX)) >/dev/null 2>&1 && echo yes)
HAVE_UTF8PROC := $(call header,utf8proc.h)
HAVE_STEMMER  := $(call header,libstemmer.h)
HAVE_ZLIB     := $(call header,zlib.h)
CAN_FUZZ      := $(shell echo 'int LLVMFuzzerTestOneInput(void) { return 0; }' | \
                   $(CLANG) -x c - -fsanitize=fuzzer,address -o /dev/null 2>/dev/null && echo yes)

CUDA     ?= /usr/local/cuda
NVCC     ?= $(firstword $(wildcard $(CUDA)/bin/nvcc) $(shell command -v nvcc 2>/dev/null))
HAVE_NVCC := $(if $(NVCC),$(shell $(NVCC) --version >/dev/null 2>&1 && echo yes))
# GPU=1: with the CUDA backend; GPU=0: without; otherwise with it where a device answers, and then for that device.
GPU      ?=
DEVICE   := $(if $(filter 0,$(GPU)),,$(if $(HAVE_NVCC),$(shell \
              nvidia-smi --query-gpu=compute_cap --format=csv,noheader 2>/dev/null | \
               sed -n '/^[0-9]*\.[0-9]*$$/{s/\.//p;q}')))
WITH_GPU := $(if $(HAVE_NVCC),$(if $(filter 1,$(GPU)),yes,$(if $(DEVICE),yes)))
# Compute capabilities to compile for; PTX of the last one serves newer devices.
GPU_ARCH ?= $(or $(DEVICE),80 90)

GPU_CODE  = $(foreach a,$(GPU_ARCH),-gencode arch=compute_$(a),code=sm_$(a)) \
            -gencode arch=compute_$(lastword $(GPU_ARCH)),code=compute_$(lastword $(GPU_ARCH))
NVFLAGS   = -std=c++17 -O3 $(GPU_CODE) -diag-suppress 177 $(CPPFLAGS) -I. \
            -Xcompiler -fPIC,-fno-exceptions,-fno-rtti,-fno-threadsafe-statics
CUDA_LIBS = -L$(firstword $(wildcard $(CUDA)/lib64 $(dir $(NVCC))../lib64)) -lcudart_static -ldl -lrt -lpthread

DEFINES = $(if $(HAVE_UTF8PROC),-DGPUIR_WITH_UTF8PROC=1) $(if $(HAVE_STEMMER),-DGPUIR_WITH_STEMMER=1)
DEFINES += $(if $(HAVE_ZLIB),-DGPUIR_WITH_ZLIB=1)
# The laboratory, MPI and the command use what the header declares to them alone; tools/common, fuse and the examples do
# with what embedders have.
EXPERIMENTAL = $(if $(filter tools/common/%,$<),,-DGPUIR_EXPERIMENTAL)
GPU_DEFINE = $(if $(WITH_GPU),-DGPUIR_WITH_CUDA=1)
LIBS    = $(if $(HAVE_UTF8PROC),-lutf8proc) $(if $(HAVE_STEMMER),-lstemmer) -lm -pthread
TOOL_LIBS = $(if $(HAVE_ZLIB),-lz) $(LIBS) -ldl

# ---- files -------------------------------------------------------------------------------------------------------

TOOL_ROOMS    = cli common exchange reorder lab
TOOL_SOURCES  = $(wildcard $(TOOL_ROOMS:%=tools/%/*.c))
TOOL_OBJECTS  = $(patsubst %.c,$(B)/obj/%.o,$(TOOL_SOURCES))
FUSE_OBJECTS  = $(patsubst %.c,$(B)/obj/%.o,$(wildcard fuse/*.c tools/common/*.c))
GPU_TESTS     = $(patsubst %.c,$(B)/%,$(wildcard tests/gpu/*.c))
GPU_ENGINE    = $(if $(WITH_GPU),$(B)/gpuir_cuda.o)
GPU_LAB       = $(if $(WITH_GPU),$(B)/gpuir_lab.o)# the engine and the papers' kernels
TEST_PROGRAMS = $(patsubst %.c,$(B)/%,$(wildcard tests/unit/*.c tests/e2e/*.c)) $(B)/tests/fuzz/commands \
  $(if $(HAVE_FUSE),$(B)/tests/gpuirfs_standin)
MUTATE        = $(B)/asan/tests/fuzz/mutate $(if $(CAN_FUZZ),$(B)/asan/tests/fuzz/mutate_texts)
FUZZERS       = $(patsubst tests/fuzz/%.c,$(B)/fuzz/%,$(wildcard tests/fuzz/fuzz_*.c))
EXAMPLES      = $(patsubst %.c,$(B)/%,$(wildcard examples/*.c)) \
                $(if $(HAVE_CXX),$(patsubst %.cc,$(B)/%,$(wildcard examples/*.cc)))
SO            = libgpuir.so.$(VERSION)
LIBRARIES     = $(B)/libgpuir.a $(B)/$(SO)
HEADER_ROOMS  = $(wildcard tools/header/*.h)
ROOM_OBJECTS  = $(patsubst tools/header/%.h,$(B)/rooms/%.o,$(filter-out tools/header/00%,$(HEADER_ROOMS)))
# What programs link: the library, or with DEV=1 the one of rooms.
LIBRARY       = $(if $(DEV),$(B)/libgpuir_rooms.so,$(B)/libgpuir.a)
comma         = ,
space         = $(subst ,, )
LINK_LIBRARY  = $(if $(DEV),-Wl$(comma)-rpath$(comma)$(abspath $(B))) $(if $(DEV),-L$(B) -lgpuir_rooms,$(LIBRARY))
# Prerequisites: a shared library only has to be there.
NEEDS_LIBRARY = $(if $(DEV),,$(LIBRARY)) | $(LIBRARY)
COMMANDS      = $(B)/gpuir $(if $(HAVE_FUSE),$(B)/gpuirfs)
MAN_PAGES     = $(wildcard tools/man/*.1 fuse/*.1)
C_SOURCES     = $(wildcard tools/*/*.[ch] tools/*/*.cu tools/cuda/*.cuh fuse/*.[ch] tests/*/*.[ch] tests/gpu/*.cu \
                examples/*.c examples/*.cc)
SCRIPTS       = .ci/run tests/run $(wildcard tools/scripts/*.sh examples/*.sh tests/*/*.sh)

Q   = $(if $(V),,@)
say = $(if $(V),@:,@printf '  %-5s %s\n' $(1) '$(2)')
# Starts a make of its own for several jobs, unless the caller gave a number of jobs already.
PARALLEL = $(MAKE) --no-print-directory $(if $(filter -j% --jobserver%,$(MAKEFLAGS)),,-j$(JOBS))

# DEV=1 builds from the rooms, for those who work on them: an object a room, all in one shared library, at -O1. A room
# that is touched is compiled alone, and no program is linked anew. What ships is the single file at -O3.
DEV ?=

C99     = $(CC) -std=c99 $(WARNINGS) $(CPPFLAGS) $(DEFINES)
COMPILE = $(C99) $(if $(DEV),$(SOONER),$(CFLAGS)) -I$(B)/include -I. -MMD -MP
# Takes gpuir.h itself, the single file. gcc looks up the text of each line for what it says of indentation, which takes
# longer than all else that its front end does: the rooms and compile.bats are asked for that.
COMPILE_WHOLE = $(C99) -Wno-misleading-indentation $(CFLAGS) -I. -MMD -MP
# Programs that run once: what is saved in compiling is more than is lost in running them. -g1 has the lines.
SOONER  = $(patsubst -g,-g1,$(patsubst -O3,-O1,$(patsubst -O2,-O1,$(CFLAGS))))
# In tests small indexes have dense lists where they are asked for, in fuzzers without being asked, too.
DENSE   = -DGPUIR__DENSE_LEAST=1u -DGPUIR__DENSE_DEFAULT
# What all tests of private functions run.
SHARED  = $(patsubst -g,-g1,$(patsubst -O3,-O2,$(CFLAGS)))

# ---- targets -----------------------------------------------------------------------------------------------------

.PHONY: header join split dev help all commands demo check test test-long test-programs unit-tests fuzzers \
        compile-cuda bench install install-strip uninstall format commit-check hooks lint \
        sanitize fuzz coverage clean synth figures wheel wheels sdist dist deb \
        report gpu test-gpu sanitize-gpu bench-gpu mpi FORCE
.DELETE_ON_ERROR:
.DEFAULT_GOAL := all

help:
	@echo 'make all        build/gpuir, build/gpuirfs, the libraries and the examples'
	@echo 'make demo       install what is missing, build, index some text, mount it and query it'
	@echo 'make dev        build/dev: the command and the unit tests, an object a room, for those who work on gpuir'
	@echo 'make check      the unit tests and the quick ones of the command: within a minute, once they are built'
	@echo 'make test       the same set-up, then every test that needs no GPU'
	@echo 'make test-long  every test in its long form'
	@echo 'make mpi        build/gpuir-mpi, which builds and searches an index in parts over MPI (mpicc); build/scale'
	@echo 'make synth      build/synth, which generates indexes of web shape and queries for them (tools/synth)'
	@echo 'make bench      latency and throughput on an index (BENCH_INDEX=FILE, BENCH_FLAGS=...)'
	@echo 'make bench-compile  what compiling gpuir.h costs: by compiler, level and macros (RUNS=3)'
	@echo 'make figures    draw charts, judge claims, copy the figures of the READMEs from the logs, tell logs'"'"' ages'
	@echo 'make report     write build/report.html: the papers and what was measured'
	@echo 'make install    to $$(DESTDIR)$$(PREFIX); install-strip without symbols; uninstall removes the same files'
	@echo 'make wheel      build/wheels: the Python package, for pip (tools/python); sdist: its sources;'
	@echo '                wheels: manylinux2014 and musllinux, x86-64 and aarch64, with compilers of PyPI'
	@echo 'make dist       build/dist: the tracked files as a tarball; gpuir.h in one file with xxHash'"'"'s header, for'
	@echo '                Meson (gpuir.wrap) and Conan, too; deb: Debian packages in build/deb'
	@echo 'make header     gpuir.h from tools/header, gpuir_cuda.cu from tools/cuda, as each make does first;'
	@echo '                join: whatever they hold; split: what was edited in them goes to the rooms'
	@echo 'make format     lay out the sources with clang-format'
	@echo 'make commit-check what is staged: layout, shell, rooms; hooks: before each commit, with its message'
	@echo 'make lint       clang-format, clang-tidy, shellcheck and mandoc find nothing'
	@echo 'make sanitize   the tests under ASan + UBSan and under TSan, some under valgrind'
	@echo 'make fuzz       each fuzzer for FUZZ_SECONDS (60)'
	@echo 'make coverage   line coverage of gpuir.h by the tests'
	@echo 'make gpu        the CUDA backend for GPU_ARCH ($(strip $(GPU_ARCH))) and its tests; needs nvcc'
	@echo 'make test-gpu   the backend against the CPU; sanitize-gpu: under compute-sanitizer; bench-gpu'
	@echo 'make clean      remove what was built (corpora under build/corpora stay)'
	@echo 'variables       CC CFLAGS LDFLAGS B=$(B) JOBS=$(JOBS) V=1 to see the commands'
	@echo '                GPU=1 with the CUDA backend, GPU=0 without (by itself: where a device answers)'
	@echo '                DESTDIR PREFIX=$(PREFIX) BINDIR INCLUDEDIR LIBDIR MANDIR SHAREDIR'

NO_GPU = $(if $(HAVE_NVCC),$(if $(filter 0,$(GPU)),GPU=0,\
         no device answers (GPU=1 builds for one elsewhere)),no nvcc was found)

all: $(LIBRARIES) $(B)/gpuir.pc $(COMMANDS) $(EXAMPLES)
	$(if $(WITH_GPU),,@echo 'note: $(NO_GPU): built without the CUDA backend (CPU only)')
	$(if $(HAVE_FUSE),,@echo 'note: no libfuse3 (libfuse3-dev) was found: gpuirfs is not built')
	$(if $(HAVE_UTF8PROC),,@echo 'note: no utf8proc (libutf8proc-dev) was found: built without the unicode analyzer')
	$(if $(HAVE_STEMMER),,@echo 'note: no libstemmer (libstemmer-dev) was found: built without stemming')
	$(if $(HAVE_ZLIB),,@echo 'note: no zlib (zlib1g-dev) was found: .ciff.gz is neither read nor written')
	$(if $(HAVE_CXX),,@echo 'note: no C++ compiler ($(CXX)) was found: the example in C++ is not built')

commands: $(COMMANDS)

# It is done by the time that make reads this.
header: ;

join split:
	$(Q)tools/scripts/rooms.sh $@ $(ROOMS_STAMP)

# What is missing is installed first, so the makes that follow look at the machine anew.
demo:
	$(Q)tools/scripts/setup.sh demo
	$(Q)+$(PARALLEL) commands
	$(Q)tools/scripts/demo.sh

dev:
	$(Q)+$(PARALLEL) DEV=1 B=$(B)/dev commands unit-tests $(B)/dev/tests/fuzz/commands

check:
	$(Q)tools/scripts/setup.sh test
	$(Q)+$(PARALLEL) dev
	$(Q)tests/run -q -j $(JOBS) -b $(B)/dev

test:
	$(Q)tools/scripts/setup.sh test
	$(Q)+$(PARALLEL) compile-cuda all mpi test-programs fuzzers $(MUTATE)
	$(Q)tests/run -j $(JOBS)

test-long:
	$(Q)tools/scripts/setup.sh test
	$(Q)+$(PARALLEL) compile-cuda all mpi test-programs fuzzers $(MUTATE)
	$(Q)+$(PARALLEL) B=$(B)/asan CFLAGS='$(SANITIZE) -fsanitize=address,undefined' GPU=0 $(B)/asan/gpuir
	$(Q)tests/run -l -j $(JOBS)
	$(Q)+$(PARALLEL) B=$(B)/tsan CFLAGS='$(SANITIZE) -fsanitize=thread' GPU=0 $(B)/tsan/gpuir \
	  $(addprefix $(B)/tsan/tests/unit/,57_share 71_crew 72_device 73_pool snapshots)
	$(Q)+$(PARALLEL) B=$(B)/asan CFLAGS='$(SANITIZE) -fsanitize=address,undefined' GPU=0 $(B)/asan/tests/unit/writers
	$(Q)GPUIR_LONG=1 TSAN_OPTIONS=halt_on_error=1 $(B)/tsan/tests/unit/snapshots
	$(Q)GPUIR_LONG=1 $(B)/asan/tests/unit/writers
	$(Q)tools/scripts/pool_tsan.sh $(B)/tsan $(TSAN_SECONDS)

# For how long the queues of pools run under ThreadSanitizer.
TSAN_SECONDS ?= 600

test-programs: $(TEST_PROGRAMS) synth

unit-tests: $(patsubst %.c,$(B)/%,$(wildcard tests/unit/*.c))

synth: $(B)/synth

# ---- library -----------------------------------------------------------------------------------------------------

# Holds the compiler and its flags: when they change, everything is built anew. All that is compiled waits for it, and
# so for the header.
$(B)/flags: FORCE | $(B)/include/gpuir.h
	@mkdir -p $(@D)
	@echo '$(CC) $(CXX) $(WARNINGS) $(CPPFLAGS) $(DEFINES) $(CFLAGS) $(CXXFLAGS) $(LDFLAGS)' | cmp -s - $@ || \
	  echo '$(CC) $(CXX) $(WARNINGS) $(CPPFLAGS) $(DEFINES) $(CFLAGS) $(CXXFLAGS) $(LDFLAGS)' >$@

# Whether the programs have the CUDA backend.
$(B)/gpu: FORCE
	@mkdir -p $(@D)
	@echo '$(GPU_DEFINE)' | cmp -s - $@ || echo '$(GPU_DEFINE)' >$@

$(B)/libgpuir.c: Makefile
	@mkdir -p $(@D)
	@printf '#define GPUIR_IMPLEMENTATION\n#include "gpuir.h"\n' >$@

$(B)/libgpuir.o: $(B)/libgpuir.c $(B)/flags
	$(call say,CC,$@)
	$(Q)$(COMPILE_WHOLE) -fPIC -c -o $@ $<

$(B)/libgpuir.a: $(B)/libgpuir.o
	$(call say,AR,$@)
	$(Q)rm -f $@ && $(AR) rcs $@ $<

$(B)/$(SO): $(B)/libgpuir.o tools/scripts/gpuir.map
	$(call say,LD,$@)
	$(Q)$(CC) $(CFLAGS) $(LDFLAGS) -shared -Wl,-soname,libgpuir.so.$(SO_MAJOR) -Wl,-z,defs \
	  -Wl,--version-script=tools/scripts/gpuir.map -o $@ $< $(LIBS)
	$(Q)ln -sf $(SO) $(B)/libgpuir.so.$(SO_MAJOR) && ln -sf $(SO) $(B)/libgpuir.so

# The interface, and the implementation, each line with its room. Both files are left alone where they stay the same.
$(B)/include/gpuir.h $(B)/include/gpuir_rooms.h &: tools/scripts/include.awk $(HEADER_ROOMS)
	@mkdir -p $(@D)
	$(Q)LC_ALL=C awk -v to=$(@D) -f $^

# One room's functions, with declarations of all others: made anew where the room or any declaration changed.
$(B)/rooms/%.c: tools/header/%.h $(B)/private/private.h
	@mkdir -p $(@D)
	$(Q)LC_ALL=C awk -v room=$< -f tests/support/private.awk $(HEADER_ROOMS) >$@

.SECONDARY: $(ROOM_OBJECTS:.o=.c)

$(B)/rooms/%.o: $(B)/rooms/%.c $(B)/flags
	$(call say,CC,$@)
	$(Q)$(COMPILE) -fPIC -c -o $@ $<

$(B)/libgpuir_rooms.so: $(ROOM_OBJECTS)
	$(call say,LD,$@)
	$(Q)$(CC) $(CFLAGS) $(LDFLAGS) -shared -Wl,-soname,$(@F) -Wl,-Bsymbolic -Wl,-z,defs -o $@ $^ $(LIBS)

$(B)/gpuir.pc: tools/scripts/gpuir.pc.in tools/scripts/gpuir.pc.awk FORCE
	@mkdir -p $(@D)
	@VERSION='$(VERSION)' LIBS='$(strip $(LIBS))' awk -f tools/scripts/gpuir.pc.awk $< >$@.new
	@if cmp -s $@.new $@; then rm $@.new; else mv $@.new $@; fi

# What find_package(gpuir) of CMake reads, in the folder cmake/gpuir of the libraries'.
CMAKE_FILES = $(B)/cmake/gpuir-config.cmake $(B)/cmake/gpuir-config-version.cmake
$(B)/cmake/%: tools/cmake/%.in tools/scripts/gpuir.pc.awk FORCE
	@mkdir -p $(@D)
	@INCLUDEDIR="$$(realpath -ms --relative-to="$$LIBDIR/cmake/gpuir" "$$INCLUDEDIR")" VERSION='$(VERSION)' \
	  SOMAJOR='$(SO_MAJOR)' LIBS='$(subst $(space),;,$(strip $(filter-out -pthread,$(LIBS))))' \
	  awk -f tools/scripts/gpuir.pc.awk $< >$@

# ---- GPU ---------------------------------------------------------------------------------------------------------

$(B)/gpuir_cuda.o: gpuir_cuda.cu gpuir.h $(B)/flags
	$(call say,NVCC,$@)
	$(Q)$(NVCC) $(NVFLAGS) -c -o $@ $<

# The engine and the kernels of the literature.
$(B)/gpuir_lab.o: tools/lab/gpuir_lab.cu tools/lab/gpuir_lab.h gpuir_cuda.cu gpuir.h $(B)/flags
	$(call say,NVCC,$@)
	$(Q)$(NVCC) $(NVFLAGS) -c -o $@ $<

# Where the programs are built without a device, nvcc compiles all there is once, for one architecture, with the seam by
# which tests let calls fail: one of them needs no device.
compile-cuda: $(if $(HAVE_NVCC),$(if $(WITH_GPU),$(GPU_LAB)) $(B)/tests/gpu/test_team)

GPU_SEAM = $(if $(WITH_GPU),$(B)/gpuir_cuda_seam.o,$(B)/cuda/gpuir_lab.o)

ifeq ($(WITH_GPU),)
$(B)/cuda/gpuir_lab.o: GPU_ARCH = 90
endif
$(B)/cuda/gpuir_lab.o: tools/lab/gpuir_lab.cu tools/lab/gpuir_lab.h gpuir_cuda.cu gpuir.h $(B)/flags
	$(call say,NVCC,$@)
	@mkdir -p $(@D)
	$(Q)$(NVCC) $(NVFLAGS) -DGPUIR_CUDA_SEAM -c -o $@ $<

# The engine with a seam by which tests let calls fail.
$(B)/gpuir_cuda_seam.o: gpuir_cuda.cu gpuir.h $(B)/flags
	$(call say,NVCC,$@)
	$(Q)$(NVCC) $(NVFLAGS) -DGPUIR_CUDA_SEAM -c -o $@ $<

$(B)/tests/gpu/ceilings.o: tests/gpu/ceilings.cu tests/gpu/ceilings.h $(B)/flags
	$(call say,NVCC,$@)
	@mkdir -p $(@D)
	$(Q)$(NVCC) $(NVFLAGS) -c -o $@ $<

# C programs: linked by the C compiler, without libstdc++. GPU_WITH: what a program links besides the library.
$(B)/tests/gpu/bench_cuda: GPU_WITH = $(B)/gpuir_cuda.o $(B)/tests/gpu/ceilings.o
$(B)/tests/gpu/bench_cuda: $(B)/gpuir_cuda.o $(B)/tests/gpu/ceilings.o
$(B)/tests/gpu/bench_peers: GPU_WITH = $(B)/gpuir_cuda.o
$(B)/tests/gpu/bench_peers: $(B)/gpuir_cuda.o
$(B)/tests/gpu/test_hostile: GPU_WITH = $(B)/gpuir_cuda.o
$(B)/tests/gpu/test_hostile: $(B)/gpuir_cuda.o tests/fuzz/structure.h
$(B)/tests/gpu/test_cuda: GPU_WITH = $(B)/gpuir_cuda_seam.o
$(B)/tests/gpu/test_cuda: $(B)/gpuir_cuda_seam.o
$(B)/tests/gpu/test_team: GPU_WITH = $(GPU_SEAM) $(B)/private/private.a
$(B)/tests/gpu/test_team: KNOWN = $(EXPERIMENTAL) $(DENSE)=0u -I$(B)/private
$(B)/tests/gpu/test_team: $(GPU_SEAM) $(B)/private/private.a | $(B)/private/private.h
$(B)/tests/gpu/test_lab: GPU_WITH = $(B)/cuda/gpuir_lab.o
$(B)/tests/gpu/test_lab: $(B)/cuda/gpuir_lab.o tools/lab/gpuir_lab.h
$(B)/tests/gpu/bench_lab: GPU_WITH = $(B)/gpuir_lab.o
$(B)/tests/gpu/bench_lab: $(B)/gpuir_lab.o tools/lab/gpuir_lab.h
$(B)/tests/gpu/bench_cuda $(B)/tests/gpu/bench_lab: $(B)/commit
$(B)/tests/gpu/bench_cuda $(B)/tests/gpu/bench_lab: \
  KNOWN = $(if $(strip $(COMMIT)),-DGPUIR_COMMIT='"$(strip $(COMMIT))"')
$(GPU_TESTS): $(B)/tests/gpu/%: tests/gpu/%.c $(wildcard tests/gpu/*.h) tools/synth/synth.h $(B)/flags
	$(call say,CC,$@)
	@mkdir -p $(@D)
	$(Q)$(COMPILE) $(if $(findstring /test_,$@),$(SHARED)) $(KNOWN) $(LDFLAGS) -o $@ $< $(GPU_WITH) $(CUDA_LIBS) $(LIBS)

gpu: $(if $(HAVE_NVCC),$(GPU_TESTS)) synth
	$(if $(HAVE_NVCC),,@echo 'note: no nvcc was found: built without the CUDA backend (CPU only)')

# Without a device the program says so and succeeds.
test-gpu: gpu
	$(if $(HAVE_NVCC),$(Q)$(B)/tests/gpu/test_cuda && $(B)/tests/gpu/test_team && $(B)/tests/gpu/test_lab && \
  $(B)/tests/gpu/test_hostile,\
  @echo '1..0 # SKIP no nvcc')

sanitize-gpu: gpu
	$(if $(HAVE_NVCC),$(Q)tools/scripts/sanitize_gpu.sh $(B)/tests/gpu $(B)/sanitize-gpu,@echo 'skipped: no nvcc')

# BENCH_GPU='documents=25200000 clustering=0.8 k=10,100 modes=and,or,andor'
bench-gpu: gpu
	$(if $(HAVE_NVCC),$(Q)$(B)/tests/gpu/bench_cuda $(BENCH_GPU),@echo 'skipped: no nvcc')

# ---- programs ----------------------------------------------------------------------------------------------------

# They use the library unless they define GPUIR_IMPLEMENTATION, in which case the linker takes nothing from it.
$(B)/gpuir: $(TOOL_OBJECTS) $(GPU_LAB) $(NEEDS_LIBRARY)
	$(call say,LD,$@)
	$(Q)$(CC) $(CFLAGS) $(LDFLAGS) -o $@ $(filter %.o,$^) $(LINK_LIBRARY) $(if $(WITH_GPU),$(CUDA_LIBS)) $(TOOL_LIBS)

# Search over MPI: the command's files, but its main, and tools/mpi.
MPICC ?= mpicc
HAVE_MPI := $(shell command -v $(firstword $(MPICC)) >/dev/null 2>&1 && echo yes)
MPI_SOURCES = $(filter-out tools/mpi/scale.c,$(wildcard tools/mpi/*.c))
MPI_OBJECTS = $(patsubst %.c,$(B)/obj/%.o,$(MPI_SOURCES)) $(filter-out %/cli/gpuir.o,$(TOOL_OBJECTS))

mpi: $(if $(HAVE_MPI),$(B)/gpuir-mpi) $(B)/scale
	$(if $(HAVE_MPI),,@echo 'note: no $(MPICC) (libopenmpi-dev, openmpi-bin) was found: gpuir-mpi is not built')

$(B)/gpuir-mpi: $(MPI_OBJECTS) $(GPU_LAB) $(NEEDS_LIBRARY)
	$(call say,LD,$@)
	$(Q)OMPI_CC='$(CC)' $(MPICC) $(CFLAGS) $(LDFLAGS) -o $@ $(filter %.o,$^) $(LINK_LIBRARY) \
	  $(if $(WITH_GPU),$(CUDA_LIBS)) $(TOOL_LIBS)

# Simulates a service of many shards; it needs neither MPI nor the library.
$(B)/scale: tools/mpi/scale.c $(B)/flags
	$(call say,CC,$@)
	@mkdir -p $(@D)
	$(Q)$(COMPILE) $(LDFLAGS) -o $@ $< -lm

$(B)/obj/tools/mpi/%.o: tools/mpi/%.c $(B)/flags $(B)/gpu
	$(call say,CC,$@)
	@mkdir -p $(@D)
	$(Q)OMPI_CC='$(CC)' $(MPICC) $(wordlist 2,99,$(COMPILE)) $(EXPERIMENTAL) $(GPU_DEFINE) -c -o $@ $<

$(B)/gpuirfs: $(FUSE_OBJECTS) $(GPU_ENGINE) $(NEEDS_LIBRARY)
	$(call say,LD,$@)
	$(Q)$(CC) $(CFLAGS) $(LDFLAGS) -o $@ $(filter %.o,$^) $(LINK_LIBRARY) $(FUSE_LIBS) \
	  $(if $(WITH_GPU),$(CUDA_LIBS)) $(LIBS) -ldl

# gpuirfs with a device that a processor stands for.
$(B)/tests/gpuirfs_standin: $(wildcard fuse/*.[ch]) tests/support/standin.c \
    $(patsubst %.c,$(B)/obj/%.o,$(wildcard tools/common/*.c)) $(B)/flags $(NEEDS_LIBRARY)
	$(call say,CC,$@)
	@mkdir -p $(@D)
	$(Q)$(COMPILE) $(SOONER) $(EXPERIMENTAL) -DGPUIR_WITH_CUDA=1 $(patsubst -I%,-isystem %,$(FUSE_CFLAGS)) $(LDFLAGS) \
	  -o $@ $(filter %.c %.o,$^) $(LINK_LIBRARY) $(FUSE_LIBS) $(LIBS)

$(B)/synth: tools/synth/synth.c $(B)/flags $(NEEDS_LIBRARY)
	$(call say,CC,$@)
	@mkdir -p $(@D)
	$(Q)$(COMPILE) $(LDFLAGS) -o $@ $< $(LINK_LIBRARY) $(LIBS)

$(B)/obj/tools/%.o: tools/%.c $(B)/flags $(B)/gpu
	$(call say,CC,$@)
	@mkdir -p $(@D)
	$(Q)$(COMPILE) $(EXPERIMENTAL) $(GPU_DEFINE) $(KNOWN) -c -o $@ $<

# What measurements say of the build: the commit, if it is known.
$(B)/commit: FORCE
	@mkdir -p $(@D)
	@echo '$(strip $(COMMIT))' | cmp -s - $@ || echo '$(strip $(COMMIT))' >$@

$(B)/obj/tools/lab/report.o: $(B)/commit
$(B)/obj/tools/lab/report.o: KNOWN = $(if $(strip $(COMMIT)),-DGPUIR_COMMIT='"$(strip $(COMMIT))"')

$(B)/obj/fuse/%.o: fuse/%.c $(B)/flags $(B)/gpu
	$(call say,CC,$@)
	@mkdir -p $(@D)
	$(Q)$(COMPILE) $(GPU_DEFINE) $(patsubst -I%,-isystem %,$(FUSE_CFLAGS)) -c -o $@ $<

# Tests of private functions include private.h. All tests share one object, which defines these, too (see private.awk).
$(B)/private/private.h: tests/support/private.awk $(HEADER_ROOMS)
	@mkdir -p $(@D)
	$(Q)LC_ALL=C awk -f $^ >$@.new
	@if cmp -s $@.new $@; then rm $@.new; else mv $@.new $@; fi

$(B)/private/private.c: tests/support/private.awk gpuir.h
	@mkdir -p $(@D)
	$(Q)awk -v define=1 -f $^ >$@

$(B)/private/private.o: $(B)/private/private.c $(B)/flags
	$(call say,CC,$@)
	$(Q)$(COMPILE_WHOLE) $(SHARED) $(DENSE)=0u -c -o $@ $<

# The same with small tiles and limits, for tests that want many of them in small collections.
$(B)/private/small.o: $(B)/private/private.c tests/support/small.h $(B)/flags
	$(call say,CC,$@)
	$(Q)$(COMPILE_WHOLE) $(SHARED) -include tests/support/small.h -c -o $@ $<

$(B)/private/%.a: $(B)/private/%.o
	$(call say,AR,$@)
	$(Q)rm -f $@ && $(AR) rcs $@ $<

PRIVATE = $(if $(DEV),$(LINK_LIBRARY),$(B)/private/private.a)# what a test links
SMALL_TESTS = $(patsubst %,$(B)/tests/unit/%,59_words histories orders wheres)
$(SMALL_TESTS): PRIVATE = $(B)/private/small.a
$(SMALL_TESTS): $(B)/private/small.a

$(B)/tests/%: tests/%.c $(if $(DEV),,$(B)/private/private.a) $(B)/flags \
    | $(B)/private/private.h $(LIBRARY)
	$(call say,CC,$@)
	@mkdir -p $(@D)
	$(Q)$(COMPILE) $(SOONER) $(EXPERIMENTAL) $(if $(DEV),,$(DENSE)=0u) -I$(B)/private -Itests/support $(LDFLAGS) -o $@ $< \
	  $(PRIVATE) -lcmocka $(LIBS)

# Damaged indexes are of use only where the smallest wrong access is noticed. The fuzzers' library serves, if there is
# one.
$(B)/asan/tests/fuzz/mutate: tests/fuzz/mutate.c tests/fuzz/library.c $(B)/private/private.c \
    $(if $(CAN_FUZZ),$(B)/fuzz/library.o) $(B)/flags
	$(call say,CC,$@)
	@mkdir -p $(@D)
	$(Q)$(if $(CAN_FUZZ),$(FUZZ_CC),$(CC) -std=c99 $(WARNINGS) $(EXPERIMENTAL) $(CPPFLAGS) $(DEFINES) $(DENSE)=24u \
	  $(SANITIZE) -fsanitize=address,undefined -I. -I$(B)/private -Itests/support -MMD -MP) \
	  -o $@ $< $(if $(CAN_FUZZ),$(B)/fuzz/library.o,tests/fuzz/library.c) $(LIBS)

# It takes in what reads files, as the fuzzer of records does.
$(B)/asan/tests/fuzz/mutate_texts: tests/fuzz/mutate_texts.c $(B)/fuzz/library.o $(B)/private/private.h $(B)/flags
	$(call say,CC,$@)
	@mkdir -p $(@D)
	$(Q)$(FUZZ_CC) -o $@ $< $(B)/fuzz/library.o $(TOOL_LIBS)

# Each example defines GPUIR_IMPLEMENTATION, for who compiles it by the line in its comment, as examples.bats does. Here
# all take the implementation from the library: compiling it for each would take longer than all else that is built.
IMPLEMENTED = -DGPUIR_IMPLEMENTED

$(B)/examples/%: examples/%.c $(B)/flags $(NEEDS_LIBRARY)
	$(call say,CC,$@)
	@mkdir -p $(@D)
	$(Q)$(COMPILE) $(SOONER) $(IMPLEMENTED) $(LDFLAGS) -o $@ $< $(LINK_LIBRARY) $(LIBS)

$(B)/examples/%: examples/%.cc $(B)/flags $(NEEDS_LIBRARY)
	$(call say,CXX,$@)
	@mkdir -p $(@D)
	$(Q)$(CXX) -std=c++17 $(WARNINGS) $(CPPFLAGS) $(DEFINES) $(CXXFLAGS) $(SOONER) $(IMPLEMENTED) -I$(B)/include -I. \
	  -MMD -MP $(LDFLAGS) -o $@ $< $(LINK_LIBRARY) $(LIBS)

# ---- installing --------------------------------------------------------------------------------------------------

# What bash, zsh and fish look for below SHAREDIR.
COMPLETIONS = bash-completion/completions/gpuir zsh/site-functions/_gpuir fish/vendor_completions.d/gpuir.fish

# The shell gets these as variables of its environment, whatever characters they have; that of tests, which install
# elsewhere, does not.
install uninstall $(B)/gpuir.pc $(CMAKE_FILES): export DESTDIR := $(DESTDIR)
install uninstall $(B)/gpuir.pc $(CMAKE_FILES): export PREFIX := $(PREFIX)
install uninstall $(B)/gpuir.pc $(CMAKE_FILES): export BINDIR := $(BINDIR)
install uninstall $(B)/gpuir.pc $(CMAKE_FILES): export INCLUDEDIR := $(INCLUDEDIR)
install uninstall $(B)/gpuir.pc $(CMAKE_FILES): export LIBDIR := $(LIBDIR)
install uninstall $(B)/gpuir.pc $(CMAKE_FILES): export MANDIR := $(MANDIR)
install uninstall $(B)/gpuir.pc $(CMAKE_FILES): export SHAREDIR := $(SHAREDIR)

# DESTDIR goes before all of them; STRIP=1 leaves the symbols of the programs and the library out.
STRIP ?=

install: all $(CMAKE_FILES)
	$(Q)install -d "$$DESTDIR$$BINDIR" "$$DESTDIR$$INCLUDEDIR" "$$DESTDIR$$LIBDIR/pkgconfig" \
	  "$$DESTDIR$$LIBDIR/cmake/gpuir" "$$DESTDIR$$MANDIR/man1" \
	  $(foreach f,$(COMPLETIONS),"$$DESTDIR$$SHAREDIR/$(dir $(f))")
	$(Q)install -m 755 $(if $(STRIP),-s) $(COMMANDS) "$$DESTDIR$$BINDIR"
	$(Q)install -m 644 gpuir.h "$$DESTDIR$$INCLUDEDIR"
	$(Q)install -m 644 $(B)/libgpuir.a "$$DESTDIR$$LIBDIR"
	$(Q)$(if $(STRIP),strip -g "$$DESTDIR$$LIBDIR/libgpuir.a")
	$(Q)install -m 755 $(if $(STRIP),-s) $(B)/$(SO) "$$DESTDIR$$LIBDIR"
	$(Q)ln -sf $(SO) "$$DESTDIR$$LIBDIR/libgpuir.so.$(SO_MAJOR)"
	$(Q)ln -sf $(SO) "$$DESTDIR$$LIBDIR/libgpuir.so"
	$(Q)install -m 644 $(B)/gpuir.pc "$$DESTDIR$$LIBDIR/pkgconfig"
	$(Q)install -m 644 $(CMAKE_FILES) "$$DESTDIR$$LIBDIR/cmake/gpuir"
	$(Q)install -m 644 $(MAN_PAGES) "$$DESTDIR$$MANDIR/man1"
	$(Q)$(foreach f,$(COMPLETIONS),$(B)/gpuir completion $(firstword $(subst /, ,$(subst -completion,,$(f)))) \
	  >"$$DESTDIR$$SHAREDIR/$(f)" &&) :
	@printf 'installed to %s\n' "$$DESTDIR$$PREFIX"

install-strip:
	$(Q)+$(MAKE) --no-print-directory install STRIP=1

uninstall:
	$(Q)rm -f "$$DESTDIR$$BINDIR/gpuir" "$$DESTDIR$$BINDIR/gpuirfs" "$$DESTDIR$$INCLUDEDIR/gpuir.h" \
	  $(foreach f,libgpuir.a $(SO) libgpuir.so.$(SO_MAJOR) libgpuir.so pkgconfig/gpuir.pc \
	  $(addprefix cmake/gpuir/,$(notdir $(CMAKE_FILES))),"$$DESTDIR$$LIBDIR/$(f)") \
	  $(foreach page,$(notdir $(MAN_PAGES)),"$$DESTDIR$$MANDIR/man1/$(page)") \
	  $(foreach f,$(COMPLETIONS),"$$DESTDIR$$SHAREDIR/$(f)")

# ---- the Python package ------------------------------------------------------------------------------------------

wheel:
	$(Q)CC='$(CC)' CFLAGS='$(filter-out -g,$(CFLAGS))' python3 tools/python/backend.py wheel $(B)/wheels

sdist: tools/python/third
	$(Q)python3 tools/python/backend.py sdist $(B)/wheels

tools/python/third:
	$(Q)tools/python/third.sh

wheels: tools/python/third
	$(Q)tools/python/wheels.sh $(B)/wheels

# ---- distributions -----------------------------------------------------------------------------------------------

# The header of xxHash that is put into the one file.
XXHASH ?= $(firstword $(wildcard $(addsuffix /xxhash.h,$(INCLUDEDIR) /usr/include /usr/local/include)))

# The folder of the one file, with what Meson and Conan read.
SINGLE = $(B)/dist/gpuir-$(VERSION)-single
SINGLE_FILES = $(SINGLE)/gpuir.h $(SINGLE)/LICENSE $(SINGLE)/meson.build $(SINGLE)/conanfile.py

dist: $(B)/dist/gpuir-$(VERSION).tar.gz $(B)/dist/gpuir.wrap
	@printf '%s\n' $^ $(SINGLE).tar.gz $(SINGLE)/gpuir.h

$(B)/dist/gpuir-$(VERSION).tar.gz: FORCE
	@mkdir -p $(@D)
	$(Q)git rev-parse -q --verify HEAD >/dev/null || \
	  { echo 'make dist: this is no clone, and holds no history' >&2; exit 1; }
	$(Q)git archive --format=tar --prefix=gpuir-$(VERSION)/ HEAD | gzip -n >$@

$(SINGLE)/gpuir.h: gpuir.h $(XXHASH) tools/scripts/single.awk
	@mkdir -p $(@D)
	$(Q)test -n '$(XXHASH)' || { echo 'make dist: no xxhash.h was found; XXHASH=FILE names one' >&2; exit 1; }
	$(Q)LC_ALL=C awk -f tools/scripts/single.awk $(XXHASH) gpuir.h >$@

$(SINGLE)/LICENSE: LICENSE
	@mkdir -p $(@D) && cp $< $@

$(SINGLE)/%: tools/cmake/%.in gpuir.h
	@mkdir -p $(@D)
	@VERSION='$(VERSION)' awk -f tools/scripts/gpuir.pc.awk $< >$@

# The same files give the same bytes.
$(SINGLE).tar.gz: $(SINGLE_FILES)
	$(Q)tar -C $(B)/dist --sort=name --owner=0 --group=0 --numeric-owner --mtime=@0 --mode=644 -cf - \
	  $(patsubst $(B)/dist/%,%,$^) | gzip -n >$@

$(B)/dist/gpuir.wrap: tools/cmake/gpuir.wrap.in $(SINGLE).tar.gz
	@VERSION='$(VERSION)' HASH="$$(sha256sum $(SINGLE).tar.gz | cut -d ' ' -f 1)" \
	  awk -f tools/scripts/gpuir.pc.awk $< >$@

# Debian's packages, from the tarball with tools/debian laid into it; lintian looks at them, where it is.
DEB = $(B)/deb/gpuir-$(VERSION)

deb: $(B)/dist/gpuir-$(VERSION).tar.gz
	$(Q)command -v dpkg-buildpackage >/dev/null && command -v dh_python3 >/dev/null || \
	  { echo 'make deb: it needs dpkg-dev, debhelper and dh-python' >&2; exit 1; }
	$(Q)rm -rf $(B)/deb && mkdir -p $(B)/deb
	$(Q)cp $< $(B)/deb/gpuir_$(VERSION).orig.tar.gz
	$(Q)tar -xzf $< -C $(B)/deb && cp -r $(DEB)/tools/debian $(DEB)/debian
	$(Q)cd $(DEB) && env -u MAKEFLAGS -u MAKELEVEL -u MFLAGS dpkg-buildpackage -us -uc >../build.log 2>&1 || \
	  { tail -n 40 ../build.log; exit 1; }
	$(Q)if command -v lintian >/dev/null; then lintian --allow-root --fail-on error,warning $(B)/deb/*.changes; \
	  else echo 'note: no lintian was found'; fi
	@ls $(B)/deb/*.deb

# ---- measuring ---------------------------------------------------------------------------------------------------

BENCH_INDEX ?= $(firstword $(wildcard $(B)/corpora/linux-chunks.gpuir $(B)/corpora/linux.gpuir) $(B)/bench.gpuir)
BENCH_FLAGS ?=

bench: commands
	$(Q)test -e $(BENCH_INDEX) || $(B)/gpuir index -q --tsv --store tests/data/wordnet.tsv -o $(BENCH_INDEX)
	$(Q)$(B)/gpuir bench --tsv $(B)/bench.tsv $(BENCH_FLAGS) $(BENCH_INDEX)

.PHONY: bench-compile
bench-compile:
	$(Q)tools/scripts/bench_compile.sh

# The logs of the laboratory: folders and files that claims.c knows.
LAB_LOGS = $(addprefix tools/results/,lab-web lab-dict lab lab-pagerank lab-ao lab-ao-large lab-alone lab-cache \
  lab-manuals lab-manuals-gpu lab-chunks schedulers schedulers-more tatikonda-large tatikonda-uneven) \
  $(wildcard tools/results/tatikonda*.tsv)

# Draws the committed charts again from the logs beside them, judges the claims by the logs, and copies figures and
# verdicts into the READMEs.
figures: $(B)/gpuir
	$(Q)for picture in $(wildcard tools/results/*.svg tools/results/*/*.svg); do \
	  $(B)/gpuir lab plot --figures "$$(basename "$$picture" .svg)" "$$(dirname "$$picture")" || exit 1; done
	$(Q)$(B)/gpuir lab report -o tools/results/verdicts.tsv $(LAB_LOGS)
	$(Q)tools/scripts/figures.py
	$(Q)tools/scripts/figures.py --ages
	$(Q)tools/scripts/quote.py README.md .github/SECURITY.md tools/README.md tools/mpi/SCALE.md \
	  $(wildcard tools/*/README.md)

# One page of the papers' claims and all committed charts of the laboratory.
report: $(B)/gpuir
	$(Q)$(B)/gpuir lab report -o $(B)/report.html $(LAB_LOGS)
	@echo $(B)/report.html

# ---- checking ----------------------------------------------------------------------------------------------------

format:
	$(Q)clang-format -i $(C_SOURCES)
	$(Q)tools/scripts/rooms.sh header $(ROOMS_STAMP)

commit-check:
	$(Q)tools/scripts/commit_check.sh

hooks:
	$(Q)tools/scripts/commit_check.sh install

lint: $(B)/libgpuir.c
	$(Q)tools/scripts/setup.sh dev
	$(call say,LINT,clang-format)
	$(Q)clang-format --dry-run -Werror $(C_SOURCES)
	$(call say,LINT,clang-tidy)
	$(Q)printf '%s\n' $(B)/libgpuir.c $(filter-out $(if $(HAVE_MPI),,tools/mpi/%),$(wildcard tools/*/*.c fuse/*.c)) | \
	  xargs -P $(JOBS) -I FILE sh -c 'clang-tidy --quiet FILE -- -std=c99 -DGPUIR_EXPERIMENTAL $(IMPLEMENTED) $(DEFINES) \
	  -I. $(FUSE_CFLAGS) $(if $(HAVE_MPI),$(shell $(MPICC) --showme:compile 2>/dev/null)) 2>/dev/null'
	$(call say,LINT,shellcheck)
	$(Q)shellcheck -x $(SCRIPTS)
	$(Q)shellcheck -S warning $(wildcard tests/e2e/*.bats tests/support/*.bash)
	$(call say,LINT,mandoc)
	$(Q)$(if $(MAN_PAGES),mandoc -T lint -W warning $(MAN_PAGES) tools/synth/synth.1 tools/mpi/gpuir-mpi.1)

SANITIZE = -O1 -g -fno-omit-frame-pointer -fno-sanitize-recover=all

VALGRIND = valgrind -q --error-exitcode=99 --leak-check=full
VALGRIND_TESTS ?= unit/24_postings unit/30_analysis unit/41_reader unit/threads

sanitize:
	$(Q)tools/scripts/setup.sh dev
	$(Q)+$(PARALLEL) B=$(B)/asan CFLAGS='$(SANITIZE) -fsanitize=address,undefined' test-programs
	$(Q)+$(PARALLEL) B=$(B)/tsan CFLAGS='$(SANITIZE) -fsanitize=thread' test-programs
	$(Q)+$(PARALLEL) B=$(B)/valgrind CFLAGS='-O1 -g' test-programs
	$(Q)failed=0; \
	  tests/run -c -b $(B)/asan || failed=1; \
	  tests/run -c -b $(B)/tsan || failed=1; \
	  tests/run -c -b $(B)/valgrind -w '$(VALGRIND)' $(VALGRIND_TESTS) || failed=1; \
	  exit $$failed

# Each fuzzer is one C file with its purpose at the top; what it found worth keeping stays in build/fuzz.
FUZZ_SECONDS ?= 60
FUZZ_CC = $(CLANG) -std=c99 -DGPUIR_EXPERIMENTAL -Werror=implicit -O1 -g1 -fno-omit-frame-pointer \
          -fsanitize=address,undefined -fno-sanitize-recover=all \
          $(DEFINES) $(DENSE)=24u -I. -I$(B)/private -Itests/support -MMD -MP

# The library that they share.
$(B)/fuzz/library.o: tests/fuzz/library.c $(B)/private/private.c $(B)/flags
	$(call say,FUZZ,$@)
	@mkdir -p $(@D)
	$(Q)$(FUZZ_CC) -fsanitize=fuzzer-no-link -c -o $@ $<

$(B)/fuzz/%: tests/fuzz/%.c $(B)/fuzz/library.o $(B)/private/private.h $(B)/flags
	$(call say,FUZZ,$@)
	@mkdir -p $(@D)
	$(Q)$(FUZZ_CC) -fsanitize=fuzzer -o $@ $< $(B)/fuzz/library.o $(TOOL_LIBS)

fuzzers: $(if $(CAN_FUZZ),$(FUZZERS))

fuzz: fuzzers
	$(Q)tests/run -f $(FUZZ_SECONDS) fuzz_

coverage:
	$(Q)tools/scripts/setup.sh dev
	$(Q)+$(PARALLEL) B=$(B)/coverage CFLAGS='-O1 -g --coverage -fprofile-update=atomic' all test-programs
	$(Q)find $(B)/coverage -name '*.gcda' -delete
	$(Q)-tests/run -b $(B)/coverage unit/ gpuir
	$(Q)lcov --quiet --capture --directory $(B)/coverage --output-file $(B)/coverage/all.info 2>/dev/null
	$(Q)lcov --quiet --extract $(B)/coverage/all.info '*/gpuir.h' '*/tools/header/*' --output-file $(B)/coverage/gpuir.info
	$(Q)genhtml --quiet --output-directory $(B)/coverage/html $(B)/coverage/gpuir.info
	$(Q)lcov --summary $(B)/coverage/gpuir.info 2>&1 | sed -n 's/.*lines\.*: */gpuir.h: lines covered: /p'

clean:
	$(Q)rm -rf $(addprefix $(B)/,flags gpu commit include rooms dev obj private tests examples fuzz cuda demo lab asan \
	  tsan valgrind coverage gpuir gpuirfs gpuir-mpi scale gpuir_cuda.o gpuir_cuda_seam.o gpuir_lab.o gpuir.pc libgpuir.* \
	  bench.gpuir bench.tsv)

-include $(wildcard $(B)/*.d $(B)/rooms/*.d $(B)/private/*.d $(B)/obj/*/*.d $(B)/obj/*/*/*.d $(B)/tests/*/*.d \
  $(B)/examples/*.d $(B)/fuzz/*.d $(B)/asan/tests/*/*.d)
