# Long versions of what .ci/run checks, and tools for people. Everything else is plain go.
FUZZTIME ?= 60s

.PHONY: test full fuzz bench
test:
	.ci/run

# Ten times the generated sessions, and every fuzz target for a minute.
full: fuzz
	CONFORMANCE_TIMES=10 go test -race -shuffle=on -timeout 3h ./...

fuzz:
	@set -e; for pkg in $$(go list ./...); do \
		for f in $$(go test -list '^Fuzz' $$pkg | grep '^Fuzz' || true); do \
			echo "$$pkg $$f"; go test -run '^$$' -fuzz "^$$f$$" -fuzztime $(FUZZTIME) $$pkg; \
		done; \
	done

bench:
	go test -run '^$$' -bench . -benchmem ./...
