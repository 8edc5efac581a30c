# Everything a newcomer needs: `make demo` shows it, `make test` proves it.
# Both install what they need (as root, on Debian) and keep their builds in the
# user's cache directory.

GO        ?= go
GOLANGCI  ?= github.com/golangci/golangci-lint/v2/cmd/golangci-lint@v2.15.0
POOL       = integration/.state/bin/pool
# The nearest tag and the commit; a build outside of a checkout has the version that the Go command notes.
VERSION  ?= $(shell git describe --tags --match 'v[0-9]*' --always --dirty 2>/dev/null | sed 's/^[^v]/devel-&/')
GOFLAGS_STATIC = -trimpath -ldflags '-s -w$(if $(VERSION), -X podstarter/internal/buildinfo.version=$(VERSION))'
FUZZTIME  ?= 30s

.PHONY: build release image test unit compiler e2e demo demo-provisioner bench bench-memory bench-pulls bench-spares bench-images scale scale-provisioner nodes lint fuzz scraped volumes mutants matrix docs clean pool pool-up pool-down

build: ## five static binaries in bin/
	CGO_ENABLED=0 $(GO) build $(GOFLAGS_STATIC) -o bin/condor_pod_starter ./starter
	CGO_ENABLED=0 $(GO) build $(GOFLAGS_STATIC) -o bin/condor_pod_wrapper ./wrapper
	CGO_ENABLED=0 $(GO) build $(GOFLAGS_STATIC) -o bin/condor_pod_metrics ./metrics
	CGO_ENABLED=0 $(GO) build $(GOFLAGS_STATIC) -o bin/condor_pod_unpacker ./unpacker
	CGO_ENABLED=0 $(GO) build $(GOFLAGS_STATIC) -o bin/condor_pod_provisioner ./provisioner

release: ## programs, image, bill of materials, Helm chart and checksums in dist/, made twice to show that they are the same; BASE=IMAGE makes a pilot image too
	$(GO) -C release run . -out ../dist -verify $(if $(BASE),-base $(BASE))

test: unit lint e2e ## all tests, those on a real cluster and pool included

# -count=1: these tests read files above their modules, whose changes the Go command does not notice.
unit: compiler ## tests without cluster and pool; generated pages must be up to date
	$(GO) vet ./... && $(GO) vet -tags differential ./classads && $(GO) vet -tags volumes ./sandbox/commonfiles
	$(GO) -C integration vet ./... && $(GO) -C integration vet -tags pool ./... && $(GO) -C integration/chart vet -tags pool ./... && $(GO) -C release vet ./...
	$(GO) test -race ./...
	$(GO) -C integration test -race -count=1 ./...
	$(GO) -C release test -race -count=1 ./...
	$(GO) -C integration/chart test -count=1 ./...

compiler: ## the race detector links with C's run-time library
	@command -v gcc >/dev/null || { apt-get update -q && apt-get install -y -q --no-install-recommends gcc libc6-dev; }

e2e: build pool ## a real cluster, a real pool, both HTCondor versions
	integration/run-tests

demo: build pool ## starts a cluster and runs four jobs in four images on it
	$(POOL) up
	$(GO) -C integration run ./demo

demo-provisioner: build pool ## starts a cluster without pilots for them, submits jobs, and shows how the provisioner makes pods; draws it in integration/.state/provisioner.svg
	$(POOL) up --controllers --slots 1
	$(GO) -C integration run ./provision/demo

bench: build pool ## how fast containers, jobs and files follow each other; writes turnover.*, transfer-speed.md, classads.md, spares.* and slots.svg in docs/developer
	$(POOL) up --stock
	$(GO) -C integration run ./bench -docs ../docs/developer

# A pool of its own for what a real kubelet asks, which is gone before the load begins.
SCALE_POOL = PODSTARTER_STATE=$(CURDIR)/integration/.state-scale-pool
scale: build pool ## what jobs cost the control plane: 1,000 simulated pilots for ten minutes; writes docs/admin/scale.md; needs a quiet machine
	$(SCALE_POOL) $(POOL) up --slots 1 --audit
	$(SCALE_POOL) $(GO) -C integration run ./scale -single $(CURDIR)/bin/scale-single.json
	$(SCALE_POOL) $(POOL) down
	$(GO) -C integration run ./scale -with $(CURDIR)/bin/scale-single.json -docs ../docs/admin $(SCALE)

scale-provisioner: ## what 1,000 pods and 100,000 idle jobs cost the provisioner; writes docs/developer/provisioner-scale.md; needs a quiet machine, and no pool
	$(GO) -C integration test -tags pool -count=1 -timeout 60m -v ./provisionfaults -run TestScale -pods 1000 -jobs 100000 -docs $(CURDIR)/docs/developer

bench-spares: build pool ## the part of it about spare payload containers and many slots; writes spares.* and slots.svg in docs/developer
	$(POOL) up --stock
	$(GO) -C integration run ./bench -part spares -docs ../docs/developer

bench-memory: build pool ## the memory of pilots, idle and with jobs; writes into docs/developer/turnover.md
	$(POOL) up --stock
	$(GO) -C integration run ./bench -part memory -docs ../docs/developer

bench-pulls: build pool ## how long jobs wait for the pulls of other slots, in pools of its own; writes into docs/developer/pulls.md
	$(POOL) up --stock=false
	$(GO) -C integration run ./bench -part pulls -docs ../docs/developer

# Another pool than that of `make test`, whose image is HTCondor's whole package.
IMAGE_POOL = PODSTARTER_STATE=$(CURDIR)/integration/.state-image
IMAGE_JOBS = TestPlainJob|TestModeVisit|TestModeURLs|TestModePlugins|TestModeToken|TestSitePrograms|TestCheckOfHealthyPod
image: build pool ## builds deploy/image/Dockerfile with buildah, and runs jobs in an execution point with that image
	$(IMAGE_POOL) $(POOL) up --dockerfile
	$(IMAGE_POOL) $(GO) -C integration test -tags pool -count=1 -timeout 5m -v ./pilotimage
	$(IMAGE_POOL) $(GO) -C integration test -tags pool -count=1 -timeout 15m ./e2e -run '^($(IMAGE_JOBS))$$'
	$(IMAGE_POOL) $(POOL) down

nodes: build pool ## what becomes of jobs when a node is drained, shut down, dies, is cut off, or has a wrong clock: a cluster of two nodes in guests
	$(POOL) up --guests 2 --stock --slots 8 --partitionable=false
	$(GO) -C integration test -tags pool -count=1 -timeout 60m -v ./nodes

bench-images: build pool ## how long jobs wait for images that are files, beside Apptainer and the registry; writes docs/developer/images.md
	$(POOL) up --stock=false --stock-apptainer
	$(GO) -C integration run ./bench -part images -docs ../docs/developer

matrix: pool ## chosen tests on other versions of Kubernetes; writes docs/admin/support.md; goes on where it ended, MATRIX=-again runs all
	$(GO) -C integration build -trimpath -o $(CURDIR)/integration/.state/bin/matrix ./matrix
	integration/.state/bin/matrix $(MATRIX); passed=$$?; $(GO) -C integration test -count=1 ./matrix -run TestSupportPage -update && exit $$passed

mutants: compiler ## mistakes put into the product on purpose, each of which a unit test must notice
	$(GO) run ./mutants

lint: ## the rules of .golangci.yml; modules must require exactly what they need
	$(GO) mod tidy -diff
	$(GO) -C integration mod tidy -diff
	$(GO) -C integration/chart mod tidy -diff
	$(GO) -C release mod tidy -diff
	$(GO) run $(GOLANGCI) run --build-tags differential ./...
	$(GO) -C integration run $(GOLANGCI) run --build-tags pool ./...
	$(GO) -C integration/chart run $(GOLANGCI) run --build-tags pool ./...
	$(GO) -C release run $(GOLANGCI) run ./...

fuzz: ## every fuzz target for FUZZTIME each
	@for module in . integration release; do for pkg in $$($(GO) -C $$module list ./...); do \
	  for target in $$($(GO) -C $$module test -list '^Fuzz' $$pkg | grep '^Fuzz'); do \
	    echo "$$pkg $$target"; $(GO) -C $$module test -run '^$$' -fuzz "^$$target$$" -fuzztime $(FUZZTIME) -fuzzminimizetime 10x $$pkg || exit 1; \
	  done; \
	done; done

scraped: ## Prometheus' own scraper and query engine, and KEDA's scaler, read the provisioner's metrics and alerts; building their libraries takes two processors ten minutes, so it is no part of `make test`
	$(GO) -C integration/scraped mod tidy -diff
	$(GO) -C integration/scraped vet ./...
	$(GO) -C integration/scraped test -count=1 -timeout 30m ./...

volumes: ## common input files on XFS and Btrfs, as root, with loop devices
	$(GO) test -tags volumes -count=1 -v -run TestReflinks ./sandbox/commonfiles

docs: ## writes the generated pages
	$(GO) test ./starter/settings -run TestKnobPages -update
	$(GO) -C integration test -count=1 ./conformance -run TestDifferencesPage -update
	$(GO) -C integration test -count=1 ./attacks -run TestThreatsPage -update
	$(GO) -C integration test -count=1 ./podfailures -run TestFailuresPage -update
	$(GO) -C integration test -count=1 ./kubeletrules -run TestRulesPage -update
	$(GO) -C integration test -count=1 ./matrix -run TestSupportPage -update
	$(GO) -C integration test -count=1 ./stocknames -run TestNamesPage -update
	$(GO) -C integration test -count=1 ./upstream -run TestPage -update
	CLASSADS_UPDATE=1 $(GO) test ./classads -run TestFunctionTable
	$(GO) run ./provisioner/simulate -docs docs/developer

pool: ## the program that runs cluster and pool
	CGO_ENABLED=0 $(GO) -C integration build -trimpath -o $(CURDIR)/$(POOL) ./pool

pool-up: build pool
	$(POOL) up --stock

pool-down: pool ## leaves only the cache behind
	rm -rf integration/.state-matrix-logs
	for state in integration/.state-*/ integration/.state/; do \
	  [ ! -d $$state ] || PODSTARTER_STATE=$$PWD/$${state%/} $(POOL) down || exit 1; \
	done
	rm -rf integration/.state integration/.state-*

clean: pool-down
	rm -rf bin dist
