# Long versions of what .ci/run checks, and tools for people. Everything else is plain go.
FUZZTIME ?= 60s
RIG ?= .tools/openclaw
PGLITE ?= .tools/pglite

.PHONY: test full fuzz mutants guards bench soak data servers openclaw-e2e openclaw-long host-versions outages cost added release packed release-all
test:
	.ci/run

# 25 times the generated sessions, the long crash, damage and soak tests, every fuzz target for a minute, mutants, the guards, and in the real OpenClaw three versions of it, long sessions, every outage and what sessions cost.
full: fuzz mutants guards servers host-versions openclaw-long outages cost release-all
	CONTEXTENGINE_CI=1 CONTEXTENGINE_PGLITE="$(abspath $(PGLITE))" CONFORMANCE_TIMES=25 \
	CRASH_POINTS=300 DAMAGE_PLACES=200 FEED_CASES=200 KILL_POINTS=8 OUTBOX_RUNS=300 SOAK_SECONDS=60 TOKENIZER_TEXTS=200000 \
	SEVERAL_MESSAGES=2000 SEVERAL_KILLS=10 SEVERAL_RUNS=20 OPENBRAIN_TURNS=300 CANARY_ROUNDS=5 \
	go test -race -shuffle=on -timeout 8h ./...

# The public conversations that figures are measured on, from their publishers, or with MIRROR= from a folder or an address; their licences differ.
data:
	go run ./cmd/contextengine dataset fetch --all $(if $(MIRROR),--from "$(MIRROR)")

# What the integration suites need from npm; PostgreSQL itself is Debian's package.
servers:
	mkdir -p "$(PGLITE)" && cp .ci/pglite/package*.json "$(PGLITE)/" && npm install --prefix "$(PGLITE)" --no-audit --no-fund --loglevel=error

# The plugin in the real OpenClaw host, in a network namespace of its own.
openclaw-e2e:
	hosts/openclaw/e2e/rig.sh "$(RIG)"
	hosts/openclaw/e2e/run.sh "$(RIG)"

# The long versions in the real OpenClaw host: sixty turns, the gateway killed in every mode, ten facts over 120 turns and two
# restarts, what changes under a session, and what is kept of one.
openclaw-long:
	hosts/openclaw/e2e/rig.sh "$(RIG)"
	E2E_LONG=1 E2E_ONLY=owning,legacy,delegating,broken,facts,changes,sessions hosts/openclaw/e2e/run.sh "$(RIG)"

# The end-to-end run on the newest OpenClaw and the two before it, which hosts/openclaw/e2e/versions names.
host-versions:
	hosts/openclaw/e2e/versions.sh "$(RIG)"

# Every outage of the engine in the real OpenClaw host, twelve turns each, and what doctor --fix mends under it.
outages:
	hosts/openclaw/e2e/rig.sh "$(RIG)"
	E2E_ONLY=mute,repairs E2E_MUTE=long hosts/openclaw/e2e/run.sh "$(RIG)"

# What a session costs with the plugin and with the host's own engine: three runs at 40k and one at 128k, an hour or so.
cost:
	hosts/openclaw/e2e/rig.sh "$(RIG)"
	hosts/openclaw/e2e/cost.sh "$(RIG)"

# What the plugin adds to the time of a turn there. Nobody else should use the machine.
added:
	hosts/openclaw/e2e/rig.sh "$(RIG)"
	hosts/openclaw/e2e/added.sh "$(RIG)"

# Small changes to the engine and to the memory store, another sample each time: which of them no test notices. An hour or so.
MUTANTS ?= 400
mutants:
	go run ./internal/mutants -n $(MUTANTS) -folders core,core/engine,backends/memory -stages './core/... ./backends/memory; -run TestMatrixVariants|TestStoreMemory ./conformance; ./backends/openbrain ./hosts/openbrain ./hosts/rpc ./strategies/... ./experiment/...'

# Each guard between the parts and the window is taken away, and some test has to notice it. A few minutes.
guards:
	go run ./internal/mutants -guards -limit 10m -stages './core/... ./backends/memory; -run TestMatrixVariants|TestContained ./conformance'

fuzz:
	@set -e; for pkg in $$(go list ./...); do \
		for f in $$(go test -list '^Fuzz' $$pkg | grep '^Fuzz' || true); do \
			echo "$$pkg $$f"; go test -run '^$$' -fuzz "^$$f$$" -fuzztime $(FUZZTIME) $$pkg; \
		done; \
	done

# Ours and others side by side in one run, as one Markdown table; BENCHFLAGS="-max 1000000" for the largest sizes.
bench:
	cd bench && go run . $(BENCHFLAGS)

# Ten minutes of ten thousand sessions; says whether memory, goroutines, files and latency stay flat.
soak:
	go run ./cmd/contextengine soak --sessions 10000 --time 10m

# Everything that a release consists of, into dist/VERSION: see docs/releasing.md. ONLY=linux/amd64 makes one platform, SIGN= is a command that signs the checksums.
release:
	cd deploy/release && go run . -version "$$VERSION" $(if $(ONLY),-only "$$ONLY") $(if $(SIGN),-sign "$$SIGN")

# What "make release" packed for npm, installed by the real OpenClaw host from a registry on loopback, and then all other parts of the end-to-end run with the same program and plugin.
packed:
	hosts/openclaw/e2e/rig.sh "$(RIG)"
	E2E_PACKAGES="$(abspath dist/$(VERSION))" hosts/openclaw/e2e/run.sh "$(RIG)"

# All platforms twice, each time without a build cache, and the packed packages in the real OpenClaw: an hour or so.
release-all:
	RELEASE_ALL=1 .ci/release
	hosts/openclaw/e2e/rig.sh "$(RIG)"
	E2E_PACKAGES="$(abspath .tools/release)" hosts/openclaw/e2e/run.sh "$(RIG)"
