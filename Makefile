# What one does with this project. `make help` lists it.

CARGO ?= cargo
PROPTEST_CASES ?= 20000
FUZZ_SECONDS ?= 60
TWIN_RUNS ?= 5
TWIN_RANDOM ?= 20
TWIN_RANDOM_RUNS ?= 2

.PHONY: help demo test lint bench fuzz reproduce twin twin-random docs pages

help: ## what there is
	@sed -n 's/^\([a-z-]*\):.*## /\1\t/p' $(MAKEFILE_LIST) | expand -t 12

LOWMARK = $(CARGO) run --release --quiet --package lowmark --no-default-features --

demo: ## builds lowmark, compares kernels swapping and holding writers back: two minutes, most of it for the build
	@$(CARGO) build --release --package lowmark --no-default-features
	$(LOWMARK) compare swap-small \
		--kernel v3.6 --kernel v3.6+swapin_readahead=hugh-new --kernel v3.14
	@$(LOWMARK) reproduce ioless-dirty-2011 --variant demo --table dd1 --table dd10 --table dd100
	@runs=$$(mktemp -d) && trap 'rm -rf "$$runs"' EXIT && \
		$(LOWMARK) run dd-n --set n=4 --set length=30s --kernel v3.2 --events --out "$$runs" --quiet > /dev/null && \
		$(LOWMARK) report "$$runs"/* | sed -n '/^Dirty throttling/,$$p'

test: ## every test of the workspace, the rules of the house included
	$(CARGO) test --workspace

lint: ## formatting, clippy, the rules of the house
	$(CARGO) fmt --all --check
	$(CARGO) clippy --workspace --all-targets -- --deny warnings
	$(CARGO) test --workspace --test house_rules

bench: ## speed of the model, and beside other simulators where they are installed
	$(CARGO) bench --package lowmark-model
	@if [ -x bench/run.sh ]; then bench/run.sh; fi

fuzz: ## the property tests with many more cases, and every reader of traces for FUZZ_SECONDS
	PROPTEST_CASES=$(PROPTEST_CASES) $(CARGO) test --workspace
	fuzz/run.sh $(FUZZ_SECONDS)

reproduce: ## every published evaluation that has a recipe, into docs/evaluations: some minutes
	$(CARGO) build --release --package lowmark
	@# 1 says that not every claim is borne out, as the pages do.
	$(CARGO) run --release --quiet --package lowmark -- \
		reproduce --all --write docs/evaluations || [ $$? -eq 1 ]

twin: ## the suite of twin runs on real kernels, TWIN_RUNS each, into docs/twin.md: an hour and a half without KVM
	bin/twin.sh --repeat $(TWIN_RUNS)

twin-random: ## TWIN_RANDOM loads that the day gives as its seed, on 6.1 and 6.18, into docs/twin-random.md: an hour without KVM
	bin/twin.sh --random $(TWIN_RANDOM) --repeat $(TWIN_RANDOM_RUNS)

docs: ## docs/events.md, docs/causes.md and docs/coverage.md from the declarations of events, causes and of what the model has
	$(CARGO) run --quiet --package lowmark-record --example document_events > docs/events.md
	$(CARGO) run --quiet --package lowmark-report --example document_causes > docs/causes.md
	$(CARGO) run --quiet --package lowmark-model --example document_coverage > docs/coverage.md

pages: ## looks at pages of all verbs in a headless Chromium, and writes docs/pages/*.png
	@mkdir -p docs/pages
	LOWMARK_PAGES=$(CURDIR)/docs/pages $(CARGO) test --package lowmark --no-default-features --test pages_in_browser
