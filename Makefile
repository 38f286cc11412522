# `make help` lists what this file can do. Everything runs from .venv, which the first
# target that needs it creates; nothing is installed outside this folder.

SHELL := /bin/bash
.DEFAULT_GOAL := help

VENV := .venv
PY := $(VENV)/bin/python
STAMP := $(VENV)/.installed-for
DEMO_VENV := .venv-demo
DEMO_STAMP := $(DEMO_VENV)/.installed-for
CODE := $(wildcard src fuzz/src tests benchmarks examples)
# More than processors: a test that starts processes mostly waits for them. A big machine gets no
# more, because each has a PostgreSQL of its own.
PARALLEL := --numprocesses=$(shell n=$$(nproc 2>/dev/null || echo 2); echo $$((n < 2 ? 2 : 6))) --dist=loadgroup
# pip would compile 15,000 files one by one; we do it on all processors. Not all files are valid.
PIP_INSTALL := $(PY) -m pip install --quiet --disable-pip-version-check --no-compile
COMPILE := $(PY) -m compileall -qq -j 0 $(VENV)/lib || true

# A virtual environment holds absolute paths, so one that was copied or moved along with
# its folder is made anew. The stamp therefore remembers the folder it was made for.
ifneq ($(file <$(STAMP)),$(CURDIR))
.PHONY: $(STAMP)
endif
ifneq ($(file <$(DEMO_STAMP)),$(CURDIR))
.PHONY: $(DEMO_STAMP)
endif

# The first interpreter that really starts, is new enough and can make an environment.
# (A name on the PATH may be a shim without an interpreter behind it.)
define FIND_PYTHON
for name in $(PYTHON) python3.11 python3 python python3.12 python3.13 python3.14; do \
  if "$$name" -c 'import ensurepip, sys, venv; sys.exit(sys.version_info < (3, 11))' 2>/dev/null; \
  then python="$$name"; break; fi; \
done; \
if [ -z "$${python:-}" ]; then \
  echo "expected Python 3.11 or newer with its venv module on the PATH, found none;" \
       "install one, or name it: make PYTHON=/path/to/python3.11" >&2; exit 1; \
fi
endef

.PHONY: help
help: ## list the targets
	@awk -F ':.*## ' '/^[a-z-]+:.*## / { printf "  make %-15s %s\n", $$1, $$2 }' $(MAKEFILE_LIST)

.PHONY: venv
venv: $(STAMP) ## create .venv with everything the other targets need

# Every file is checked against the digests in the locks, also what builds packages: therefore nothing
# is built in an environment that pip would fill by itself.
$(STAMP): pyproject.toml fuzz/pyproject.toml requirements-dev.lock requirements-build.lock
	@set -euo pipefail; \
	if [ "$$(cat $(STAMP) 2>/dev/null)" != "$(CURDIR)" ]; then \
	  $(FIND_PYTHON); \
	  echo "creating $(VENV) with $$("$$python" --version)"; \
	  "$$python" -m venv --clear $(VENV); \
	fi; \
	$(PIP_INSTALL) --require-hashes --requirement requirements-build.lock; \
	$(PIP_INSTALL) --require-hashes --no-build-isolation --requirement requirements-dev.lock; \
	$(PIP_INSTALL) --no-deps --no-build-isolation --editable . --editable ./fuzz; \
	$(COMPILE); \
	printf '%s' "$(CURDIR)" > $(STAMP)

# The dashboard is built with the node of the PATH if it is new enough, else with that of a wheel.
DASHBOARD_STAMP := src/windlass/dashboard/static/index.html
DASHBOARD_SOURCES := $(wildcard dashboard/*.json dashboard/*.ts dashboard/index.html) \
	$(shell find dashboard/src dashboard/build dashboard/public -type f 2>/dev/null)

.PHONY: dashboard
dashboard: $(DASHBOARD_STAMP) ## build the web page into src/windlass/dashboard/static

$(DASHBOARD_STAMP): hatch_build.py $(DASHBOARD_SOURCES) | $(STAMP)
	$(PY) hatch_build.py build

.PHONY: dashboard-types
dashboard-types: $(STAMP) ## write dashboard/src/api/schema.d.ts anew from the description of the API
	$(PY) hatch_build.py types

.PHONY: check-dashboard
check-dashboard: $(STAMP) ## format, lint and types of the web page
	$(PY) hatch_build.py check

.PHONY: check
check: lint check-tidy ## lint, and the tidy ratchet, which `make test` has too

# Types take about as long as all the others together, so these run beside them.
.PHONY: lint
lint: $(STAMP) ## format, lint, types, layers, dead code and risky calls
	@$(MAKE) --no-print-directory --jobs=2 --output-sync=line \
	  check-style check-types check-dashboard check-layers check-dead-code check-risks

.PHONY: check-style check-types check-layers check-dead-code check-risks check-tidy
check-style: $(STAMP)
	$(PY) -m ruff format --check $(CODE)
	$(PY) -m ruff check $(CODE)

check-types: $(STAMP)
	$(PY) -m mypy $(CODE)

check-layers: $(STAMP)
	$(VENV)/bin/lint-imports

check-dead-code: $(STAMP)
	$(PY) -m tests.tidy.dead_code $(CODE)

check-risks: $(STAMP)
	$(PY) -m bandit --quiet --recursive --configfile pyproject.toml src fuzz/src

check-tidy: $(STAMP)
	$(PY) -m pytest tests/tidy --quiet -p no:xdist -o addopts=

.PHONY: format
format: $(STAMP) ## rewrite the code in the one format, and fix what ruff can fix
	$(PY) -m ruff check --fix-only --quiet $(CODE)
	$(PY) -m ruff format $(CODE)

.PHONY: test
test: $(STAMP) $(DASHBOARD_STAMP) ## run all tests (ARGS='-k name' selects)
	$(PY) -m pytest $(PARALLEL) $(ARGS)

.PHONY: second-try
second-try: $(STAMP) ## run what failed in the last `make test` once more, alone
	$(PY) -m tests.support.second_try

# Tests that start processes or a browser: what they find beside four busy loops, one run finds by luck.
LUCK_RUNS ?= 20
LUCKY_TESTS := tests/chaos tests/cli tests/client tests/contrib tests/dashboard tests/embedded tests/examples \
	tests/executors tests/integration tests/providers tests/server tests/worker
.PHONY: test-luck
test-luck: $(STAMP) $(DASHBOARD_STAMP) ## run the tests of processes and of the browser 20 times beside four busy loops (hours)
	$(PY) -m tests.support.luck $(LUCK_RUNS) $(PARALLEL) $(LUCKY_TESTS) $(ARGS)

.PHONY: held-loop
held-loop: $(STAMP) ## print the longest time that each route and loop held the event loop (about 20 minutes)
	LONG_TESTS=1 $(PY) -m pytest -q -p no:xdist tests/server/holds/test_every_route_and_loop.py $(ARGS)

.PHONY: test-fast
test-fast: $(STAMP) ## run the tests that need no PostgreSQL, no server and no other process
	$(PY) -m pytest $(PARALLEL) --fast $(ARGS)

.PHONY: test-long
test-long: $(STAMP) ## run the long forms: rules on every store, more jobs under kills, more seeds
	LONG_TESTS=1 $(PY) -m pytest $(PARALLEL) --all-stores tests/engine tests/store tests/chaos tests/simulator tests/domain tests/worker/isolation tests/deploy $(ARGS)

.PHONY: docs
docs: $(STAMP) ## build the documentation as a site in build/site; a warning is an error
	$(PY) hatch_build.py install
	NO_MKDOCS_2_WARNING=1 $(PY) -m mkdocs build

.PHONY: docs-reference
docs-reference: $(STAMP) ## write docs/reference anew from the options and commands
	$(PY) -m tests.site.reference docs/reference

.PHONY: blocking-client
blocking-client: $(STAMP) ## write the blocking client anew from the asynchronous one
	$(PY) -m tests.support.blocking_client

.PHONY: rights-table
rights-table: $(STAMP) ## call every route as everybody and print who is answered what
	$(PY) -m tests.server.rights

.PHONY: system-packages
system-packages: ## install from Debian what has no wheel (GStreamer, Redis, clang, AFL++), for tests and benchmarks
	@python3 tests/support/debian.py

.PHONY: demo
demo: $(DEMO_STAMP) demo-dashboard ## start everything on this machine, run real work, kill a worker, check the result (ARGS=--stay leaves a farm at work)
	$(DEMO_VENV)/bin/python -m examples.demo $(ARGS)

.PHONY: demo-dashboard
demo-dashboard: $(DEMO_STAMP)
	@$(DEMO_VENV)/bin/python hatch_build.py build --if-older

# The demo needs Windlass and ffmpeg, not the tools of its developers.
$(DEMO_STAMP): pyproject.toml fuzz/pyproject.toml requirements-build.lock requirements-demo.lock
	@set -euo pipefail; $(FIND_PYTHON); \
	echo "demo: creating $(DEMO_VENV) with $$("$$python" --version)"; \
	"$$python" -m venv --clear $(DEMO_VENV); \
	echo "demo: installing Windlass and ffmpeg, about 30 packages"; \
	install="$(DEMO_VENV)/bin/python -m pip install --disable-pip-version-check --no-compile"; \
	$$install --require-hashes --requirement requirements-build.lock --requirement requirements-demo.lock \
	  | sed -un -e 's/^Collecting \([^ ]*\).*/demo:   fetching \1/p' \
	    -e 's/^Installing collected.*/demo:   unpacking/p'; \
	$$install --quiet --no-deps --no-build-isolation --editable . --editable ./fuzz; \
	echo "demo: ready"; \
	printf '%s' "$(CURDIR)" > $(DEMO_STAMP)

.PHONY: demo-fuzz
demo-fuzz: $(STAMP) ## find a bug in a small C++ solver, name the commit that introduced it, close it when fixed, and refuse a pull request
	$(PY) -m examples.fuzz_demo $(ARGS)

.PHONY: demo-typefuzz
demo-typefuzz: $(STAMP) ## a minute of typefuzz: real z3 against real cvc5
	$(PY) -m examples.typefuzz_demo $(ARGS)

.PHONY: webapp
webapp: $(STAMP) ## start an example shop: FastAPI, PostgreSQL, jobs in its transactions
	$(PY) -m examples.webapp $(ARGS)

.PHONY: bench-browser
bench-browser: $(STAMP) $(DASHBOARD_STAMP) ## measure the dashboard in a browser: 1,000,000 jobs, a graph of 100,000 nodes, a log of 1 GB
	$(PY) -m benchmarks.browser $(ARGS)

.PHONY: bench-core
bench-core: $(STAMP) ## measure the engine on each store beside raw loops and pgqueuer
	$(PY) -m benchmarks.core $(ARGS)

.PHONY: bench-dashboard
bench-dashboard: $(STAMP) ## time the dashboard's first requests on 1,000,000 jobs beside /healthz
	$(PY) -m benchmarks.dashboard $(ARGS)

.PHONY: bench-fleet
bench-fleet: $(STAMP) ## measure servers, workers and clients beside their peers (needs redis-server)
	$(PY) -m benchmarks.fleet $(ARGS)

.PHONY: bench-live
bench-live: $(STAMP) ## measure what 200 open pages cost an idle server
	$(PY) -m benchmarks.live_pages $(ARGS)

.PHONY: bench-sla
bench-sla: $(STAMP) ## run a media farm of 45,000 jobs with flaky sources and kills; how many start in time and end correctly
	$(PY) -m benchmarks.sla $(ARGS)

.PHONY: screenshots
screenshots: $(STAMP) $(DASHBOARD_STAMP) ## take pictures of every view in both themes into docs/screenshots
	$(PY) -m tests.dashboard.pictures docs/screenshots

.PHONY: simulate
simulate: $(STAMP) ## run the simulator over many seeds (the long form of what the tests do)
	$(PY) -m windlass simulate --seeds 5000 $(ARGS)

.PHONY: interleave
interleave: $(STAMP) ## step every pair of commands through PostgreSQL, many schedules each
	$(PY) -m tests.interleaver $(ARGS)

.PHONY: lock
lock: ## write requirements-dev.lock anew from what pyproject.toml allows today
	@set -euo pipefail; $(FIND_PYTHON); \
	folder="$$(mktemp -d)"; trap 'rm -rf "$$folder"' EXIT; \
	"$$python" -m venv "$$folder"; \
	"$$folder/bin/pip" install --quiet --disable-pip-version-check '.[dev]' ./fuzz; \
	{ sed -n '/^#/p' requirements-dev.lock; \
	  "$$folder/bin/pip" freeze --all --exclude windlass --exclude windlass-fuzz --exclude pip; } > "$$folder/new"; \
	cp "$$folder/new" requirements-dev.lock
	@$(MAKE) --no-print-directory lock-hashes

# The digests of all files of each version, for every platform, from where pip is set up to look.
.PHONY: lock-hashes
lock-hashes: ## write the digests of the versions in requirements-dev.lock anew, and the smaller locks
	@set -euo pipefail; $(FIND_PYTHON); \
	folder="$$(mktemp -d)"; trap 'rm -rf "$$folder"' EXIT; \
	"$$python" -m venv "$$folder"; \
	install="$$folder/bin/pip install --quiet --disable-pip-version-check"; \
	$$install packaging; \
	"$$folder/bin/python" -m tests.supply.digests; \
	$$install --require-hashes --no-deps --requirement requirements-dev.lock; \
	"$$folder/bin/python" -m tests.supply.lock_file split

.PHONY: licences
licences: $(STAMP) ## write docs/licences.md anew from what is installed
	$(PY) -m tests.supply.licences

.PHONY: sbom
sbom: $(STAMP) ## write bills of materials (CycloneDX) of the core and of all extras to dist/
	$(PY) -m tests.supply.sbom dist

.PHONY: release-files
release-files: $(STAMP) ## build the wheels and source archives of Windlass and windlass-fuzz, with bills of materials and digests, in dist/
	rm -rf dist
	$(PY) -m hatchling build
	cd fuzz && ../$(PY) -m hatchling build --directory ../dist
	$(PY) -m tests.supply.sbom dist
	cd dist && sha256sum * > SHA256SUMS

# Each step can be repeated; the second one installs itself anew, as the version has changed.
.PHONY: release
release: $(STAMP) ## make a release: changelog entry, versions, commit, files in dist/, signed tag (VERSION=1.2.3)
	$(PY) -m tests.supply.release prepare '$(VERSION)'
	@$(MAKE) --no-print-directory release-files
	$(PY) -m tests.supply.release tag '$(VERSION)' $(ARGS)

.PHONY: audit
audit: $(STAMP) ## ask a database for known vulnerabilities; fails if none can be reached
	$(PY) -m tests.supply.audit

.PHONY: fuzz-api
fuzz-api: $(STAMP) ## send many requests of every role to every operation, on every store (FUZZ_ROUNDS=10)
	LONG_TESTS=1 $(PY) -m pytest -p no:xdist tests/server/http/test_every_role.py $(ARGS)

.PHONY: fuzz-real
fuzz-real: $(STAMP) ## fuzz two real projects with planted bugs until the engines find them (up to an hour)
	WINDLASS_FUZZ_LONG=1 WINDLASS_FETCH_REQUIRED=1 $(PY) -m pytest -n 2 tests/fuzzing/real

.PHONY: fuzz-trial
fuzz-trial: $(STAMP) ## plant 21 bugs in three real projects and score what the pipeline makes of them (half an hour; ARGS='--quiet 1m jansson')
	WINDLASS_FETCH_REQUIRED=1 $(PY) -m tests.fuzzing.trial $(ARGS)

.PHONY: fuzz-parsers
fuzz-parsers: $(STAMP) ## fuzz every parser with atheris, a minute each (ARGS='--seconds 600 clause')
	$(PY) -m tests.parsers $(ARGS)

.PHONY: clean
clean: ## remove .venv and everything that was made by the other targets
	rm -rf $(VENV) $(DEMO_VENV) build dist .mypy_cache .ruff_cache .pytest_cache .hypothesis .import_linter_cache .fuzz-corpus
	find $(CODE) -type d -name __pycache__ -prune -exec rm -rf {} +
