package agents

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"time"
)

// The sources of an agent's size.
const (
	SizeMeasured = "measured"
	SizeRegistry = "registry"
)

// Footprint is the size of an agent that is not installed yet.
type Footprint struct {
	Download int64  `json:"download,omitempty" doc:"Bytes to download"`
	Unpacked int64  `json:"unpacked,omitempty" doc:"Bytes on the disk after the installation"`
	Source   string `json:"source" enum:"registry,measured" doc:"Source of the figures: the registry, for the version in question; or the catalogue, measured on Linux"`
}

// Plan describes an installation before it begins.
type Plan struct {
	Version   string `json:"version"`
	Packages  int    `json:"packages,omitempty" doc:"Number of packages to install; absent when only the installation itself determines the number"`
	Download  int64  `json:"download,omitempty" doc:"Bytes to download; absent when unknown"`
	Unpacked  int64  `json:"unpacked,omitempty" doc:"Bytes on the disk after the installation; absent when unknown"`
	FreeBytes int64  `json:"freeBytes" doc:"Free bytes on the disk of the agents' store; 0 = unknown"`
	Enough    bool   `json:"enough" doc:"The disk has room for the installation, as far as the sizes are known"`
}

// planLimit is how long the registry may take to resolve an agent.
const planLimit = 2 * time.Minute

// Plan finds out the packages and the size of an installation, and installs nothing. An empty version means that of the catalogue. Plan
// fails like Install, and takes as long as npm takes to ask its registry.
func (in *Installer) Plan(ctx context.Context, id, version string) (Plan, error) {
	e, err := in.table.row(id)
	if err != nil {
		return Plan{}, err
	}
	if err := in.store.installable(e); err != nil {
		return Plan{}, fmt.Errorf("%s: %w", id, err)
	}
	p, err := e.planOf(InstallRequest{AgentProcessVersion: version})
	if err != nil {
		return Plan{}, fmt.Errorf("%s: %w", id, err)
	}
	in.environment.Settle(ctx, false)
	ctx, cancel := context.WithTimeout(ctx, planLimit)
	defer cancel()
	ctx, release := in.background.Call(ctx)
	defer release()
	i := &installation{installer: in, e: e, plan: p, tell: func(Progress) {}, home: in.store.home(id), step: StepResolve, planned: true}
	err = i.look(ctx)
	switch {
	case in.background.Stopped():
		return Plan{}, ErrClosed
	case err != nil:
		return Plan{}, errors.Join(ctx.Err(), &InstallError{Agent: id, Step: i.step, Stderr: i.stderr, Err: err})
	}
	return in.planned(i), nil
}

// look resolves in a temporary directory, without a lock, and so disturbs no installation.
func (i *installation) look(ctx context.Context) (err error) {
	if i.supply, err = i.source(); err != nil {
		return err
	}
	if i.dir, err = realTemp("", "deskhand-plan-*"); err != nil {
		return err
	}
	defer func() { err = errors.Join(err, os.RemoveAll(i.dir)) }()
	if err := i.supply.resolve(ctx); err != nil {
		return err
	}
	i.estimate()
	return nil
}

// estimate fills unknown sizes with the catalogue's measurements of the version: many mirrors have no sizes.
func (i *installation) estimate() {
	m := i.e.known.Size
	if i.total > 0 || m == nil || i.plan.version != i.e.known.version || machineName() != measuredOn {
		return
	}
	i.total, i.download, i.measured = m.Unpacked, cmp.Or(i.download, m.Download), true
}

// measuredOn is the machine on which the catalogue's sizes were measured.
const measuredOn = "linux-x86_64"

// planned remembers the sizes that were found out, announces them, and returns the plan.
func (in *Installer) planned(i *installation) Plan {
	if i.download > 0 || i.total > 0 {
		source := SizeRegistry
		if i.measured {
			source = SizeMeasured
		}
		in.mu.Lock()
		in.sizes[i.e.id+"@"+i.plan.version] = Footprint{Download: i.download, Unpacked: i.total, Source: source}
		in.mu.Unlock()
		in.news.announce(News{Agent: i.e.id, Ended: true, Aside: true})
	}
	free, err := freeSpace(existing(i.home))
	if err != nil {
		in.cfg.Logger.Warn("the free space is not known", "path", i.home, "error", err)
		free = 0
	}
	return Plan{
		Version: i.plan.version, Packages: i.packages, Download: i.download, Unpacked: i.total,
		FreeBytes: free, Enough: err != nil || free >= i.need(),
	}
}

// size returns the known size of the pinned version before its installation, or nil.
func (in *Installer) size(e entry) *Footprint {
	in.mu.Lock()
	defer in.mu.Unlock()
	if s, ok := in.sizes[e.id+"@"+e.known.version]; ok {
		return &s
	}
	if m := e.known.Size; m != nil {
		return &Footprint{Download: m.Download, Unpacked: m.Unpacked, Source: SizeMeasured}
	}
	return nil
}

// existing returns dir, or its nearest ancestor that exists.
func existing(dir string) string {
	for {
		_, err := os.Stat(dir)
		up := filepath.Dir(dir)
		if !errors.Is(err, fs.ErrNotExist) || up == dir {
			return dir
		}
		dir = up
	}
}

// Room for the caches of npm and uv, which keep packages packed, and for an archive beside its content; and the minimum of free space for
// an unknown size.
const (
	cacheShare   = 2 // half of the content
	archiveShare = 4 // times the download: programs pack to a third or less
	leastFree    = 256 << 20
)

// need returns how many bytes must be free.
func (i *installation) need() int64 {
	return max(i.total+i.total/cacheShare, archiveShare*i.download, leastFree)
}

// room returns an error when the disk has not enough space.
func (i *installation) room() error {
	free, err := freeSpace(i.dir)
	if err != nil {
		i.installer.cfg.Logger.Warn("the free space is not known", "path", i.dir, "error", err)
		return nil
	}
	if need := i.need(); free < need {
		return fmt.Errorf("there is not enough space in %s: %d MB are free, %d MB are needed", i.home, free/1e6, need/1e6+1)
	}
	return nil
}
