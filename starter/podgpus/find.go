package podgpus

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"os"
	"slices"
	"strings"
	"syscall"
	"time"

	"github.com/hashicorp/go-multierror"

	"podstarter/condor/gpus"
	"podstarter/payload"
	"podstarter/payload/devices"
	"podstarter/starter/failure"
)

// programTime bounds one program: the first user of a GPU may wait while its driver wakes it up.
const programTime = time.Minute

// Pod is where the GPUs of a pod are looked for, and where what was found is kept.
type Pod struct {
	// StateDir is the starters' own directory, PublishDir HTCondor's LOCK.
	StateDir, PublishDir string
	// Containers are all payload containers, WithGPUs those of them that have GPUs.
	Containers, WithGPUs []string
	// Discovery is condor_gpu_discovery or a program like it, a file of the pilot container,
	// with its arguments.
	Discovery []string
}

// Containers reach the payload containers of a pod.
type Containers interface {
	// PodUID is the pod's own identity.
	PodUID(ctx context.Context) (string, error)
	// Visit gives the wrapper of a container in its default image.
	Visit(ctx context.Context, container string, visit func(ctx context.Context, w payload.Wrapper, uid, gid int) error) error
}

// Find looks for GPUs, unless they are known, and publishes what there is for Print. It waits
// for containers that do not run yet as long as ctx allows. The error says what is missing;
// what was found is published nevertheless.
func (p Pod) Find(ctx context.Context, in Containers, log *slog.Logger) error {
	found, err := p.find(ctx, in, log)
	problem := ""
	if err != nil {
		problem = failure.OneLine(err)
	}
	text, bad := gpus.Inventory(found, problem)
	if bad != nil {
		err = multierror.Append(err, bad)
		text, _ = gpus.Inventory(nil, failure.OneLine(err))
	}
	if bad := p.publish(text); bad != nil {
		err = multierror.Append(err, fmt.Errorf("tell the startd of GPUs: %w", bad))
	}
	return err
}

// find gives what each container has. What is known of a container stays: a job may have it now.
func (p Pod) find(ctx context.Context, in Containers, log *slog.Logger) ([]gpus.Container, error) {
	uid, err := in.PodUID(ctx)
	if err != nil {
		return nil, err
	}
	before, err := p.load()
	if err != nil || before.Pod != uid {
		before = known{Pod: uid}
	}
	now := known{Pod: uid}
	var problems *multierror.Error
	for _, name := range p.WithGPUs {
		c, ok := before.of(name)
		if !ok {
			if c, err = p.visit(ctx, in, name, log.With("container", name)); err != nil {
				problems = multierror.Append(problems, err)
				continue
			}
			log.Info("Found GPUs", "container", name, "gpus", c.IDs())
		}
		now.Containers = append(now.Containers, c)
	}
	if err := p.save(now); err != nil {
		return nil, multierror.Append(problems, err)
	}
	return now.Containers, problems.ErrorOrNil()
}

func (p Pod) visit(ctx context.Context, in Containers, name string, log *slog.Logger) (gpus.Container, error) {
	c := gpus.Container{Name: name}
	err := in.Visit(ctx, name, func(ctx context.Context, w payload.Wrapper, uid, gid int) (err error) {
		c.Devices, err = p.look(ctx, visitor{w: w, uid: uid, gid: gid}, log)
		return err
	})
	if err == nil && len(c.Devices) == 0 {
		err = fmt.Errorf("payload container %s has no GPU: give it one in the pod's manifest (resources.limits), or take it out of POD_STARTER_GPU_CONTAINERS", name)
	}
	return c, err
}

// visitor runs programs in a container.
type visitor struct {
	w        payload.Wrapper
	uid, gid int
}

// look finds the devices of one container: as HTCondor's program sees them, else as the
// wrapper's does, which needs no library.
func (p Pod) look(ctx context.Context, v visitor, log *slog.Logger) ([]gpus.Device, error) {
	there, plain := lookAtNodes(ctx, v)
	for _, d := range there.Devices {
		if d.Denied != "" {
			log.Warn("Jobs cannot use a GPU of this container, as its device node is not for their user; docs/admin/gpus.md says what to do", "why", d.Denied)
		}
	}
	found, err := p.discover(ctx, v)
	switch {
	case err == nil && len(found) > 0:
		if plain == nil && len(there.Devices) != len(found) {
			log.Warn("Device nodes and the program that looks for GPUs disagree; the program counts", "nodes", len(there.Devices), "program", len(found))
		}
		return found, nil
	case plain != nil:
		return nil, errors.Join(err, plain)
	case err != nil:
		log.Warn("The program that looks for GPUs cannot run in this container's image, so jobs cannot require properties of them", "error", err)
	case len(there.Devices) > 0:
		log.Warn("The program that looks for GPUs finds none in this container, so jobs cannot require properties of them; does the container have the driver's libraries?")
	}
	return ofNodes(there), nil
}

// discover runs HTCondor's program.
func (p Pod) discover(ctx context.Context, v visitor) ([]gpus.Device, error) {
	file, err := os.ReadFile(p.Discovery[0])
	if err != nil {
		return nil, fmt.Errorf("read the program that looks for GPUs: %w", err)
	}
	output, err := v.run(ctx, payload.Spec{Path: p.Discovery[0], Args: p.Discovery, Program: file})
	if err != nil {
		return nil, err
	}
	found, err := gpus.Parse(output)
	if err != nil {
		return nil, fmt.Errorf("%s: %w", p.Discovery[0], err)
	}
	return found, nil
}

// lookAtNodes runs the wrapper's program.
func lookAtNodes(ctx context.Context, v visitor) (devices.Report, error) {
	output, err := v.run(ctx, payload.Spec{Path: devices.Program, Args: []string{devices.Program}, Itself: true})
	if err != nil {
		return devices.Report{}, err
	}
	return devices.Decode([]byte(output))
}

// run runs a program inside the payload container, as the user of its jobs and with the
// container's variables, and gives what it printed.
func (v visitor) run(ctx context.Context, s payload.Spec) (string, error) {
	path := s.Path
	ctx, cancel := context.WithTimeoutCause(ctx, programTime, fmt.Errorf("%s took longer than %s", path, programTime))
	defer cancel()
	s.Activation, s.UID, s.GID, s.Dir, s.Umask = "gpus", v.uid, v.gid, "/", 0o022
	s.ImageEnv, s.HideEnv, s.Capture = true, []string{"KUBERNETES_*"}, payload.MaxCapture
	_, err := v.w.Start(ctx, s)
	var exit payload.Exit
	if err == nil {
		exit, err = v.w.Wait(ctx)
	}
	if err != nil {
		if ctx.Err() != nil {
			err = context.Cause(ctx)
		}
		return "", fmt.Errorf("run %s: %w", path, err)
	}
	if status := syscall.WaitStatus(exit.WaitStatus); !status.Exited() || status.ExitStatus() != 0 {
		return "", fmt.Errorf("%s ended with wait status %d: %.300q", path, exit.WaitStatus, exit.Output)
	}
	return string(exit.Output), nil
}

// ofNodes gives devices the names and properties that HTCondor's program gives them, as far
// as they are known. One without an identity is called by its number in the container, which
// is what CUDA and OpenCL count by.
func ofNodes(r devices.Report) []gpus.Device {
	var found []gpus.Device
	for i, d := range r.Devices {
		props := gpus.NewProperties()
		id := fmt.Sprintf("CUDA%d", i)
		if d.Maker == devices.Intel {
			id = fmt.Sprintf("OCL%d", i)
		}
		if kind, uuid, ok := strings.Cut(d.UUID, "-"); ok {
			id = kind + "-" + uuid[:min(len(uuid), 8)]
			if slices.ContainsFunc(found, func(f gpus.Device) bool { return f.ID == id }) {
				id = d.UUID
			}
			if kind == "MIG" {
				uuid = d.UUID
			}
			props.SetString("DeviceUuid", uuid)
		}
		for name, value := range map[string]string{"DeviceName": d.Name, "DevicePciBusId": d.Bus, "NvidiaDriver": d.Driver} {
			if value != "" {
				props.SetString(name, value)
			}
		}
		if d.MemoryBytes > 0 {
			props.SetInt("GlobalMemoryMb", d.MemoryBytes>>20)
		}
		found = append(found, gpus.Device{ID: id, Properties: props})
	}
	return found
}
