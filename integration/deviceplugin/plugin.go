// Package deviceplugin is a device plugin for the kubelet, with devices that are none: a container
// that asks for one gets a device node with the name that a graphics processor has, and the
// variable by which NVIDIA's plugin names it. Behind the node is one of the kernel's own
// devices, such as /dev/null.
package deviceplugin

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"net"
	"os"
	"os/signal"
	"path/filepath"
	"strings"
	"syscall"

	"golang.org/x/sys/unix"
	"google.golang.org/grpc"
	pluginapi "k8s.io/kubelet/pkg/apis/deviceplugin/v1beta1"
	registration "k8s.io/kubelet/pkg/apis/pluginregistration/v1"
)

// Verb is the program's own verb of the plugin, which is a daemon.
const Verb = "device-plugin"

// GPU is what containers ask for that want a graphics processor.
const GPU = "nvidia.com/gpu"

// Max is how many devices there can be.
const Max = 8

// Variable is NVIDIA's.
const Variable = "NVIDIA_VISIBLE_DEVICES"

// Plugin is the plugin of one kubelet.
type Plugin struct {
	// Resource is what containers ask for.
	Resource string
	// Dir has the device nodes and the plugin's socket.
	Dir string
	// Registry is where the kubelet looks for sockets of plugins (plugins_registry).
	Registry string
	// Devices is their number.
	Devices int
}

// UUID is the identity of a device, counted from 0.
func UUID(device int) string { return fmt.Sprintf("GPU-%08d-0000-4000-8000-000000000000", device) }

// Arguments are those of [Verb].
func (p Plugin) Arguments() ([]string, error) {
	text, err := json.Marshal(p)
	return []string{Verb, string(text)}, err
}

// Run serves the kubelet until a signal.
func Run(args []string) error {
	var p Plugin
	if len(args) != 1 {
		return fmt.Errorf("%s has one argument, and not %q", Verb, args)
	}
	if err := json.Unmarshal([]byte(args[0]), &p); err != nil {
		return fmt.Errorf("reading the argument of %s: %w", Verb, err)
	}
	ctx, stop := signal.NotifyContext(context.Background(), unix.SIGTERM, unix.SIGINT)
	defer stop()
	return p.Serve(ctx)
}

// numbers are the minor numbers of harmless devices of major number 1 (mem(4), random(4)).
var numbers = []uint32{3, 5, 7, 8, 9}

// node is the device node on this machine.
func (p Plugin) node(device int) string { return filepath.Join(p.Dir, fmt.Sprintf("nvidia%d", device)) }

// Serve serves the kubelet until ctx ends.
func (p Plugin) Serve(ctx context.Context) error {
	if err := os.MkdirAll(p.Dir, 0o755); err != nil {
		return fmt.Errorf("making the directory of devices: %w", err)
	}
	for i := range p.Devices {
		err := unix.Mknod(p.node(i), unix.S_IFCHR|0o666, int(unix.Mkdev(1, numbers[i%len(numbers)])))
		if err != nil && !errors.Is(err, fs.ErrExist) {
			return fmt.Errorf("making device node %s: %w", p.node(i), err)
		}
		if err := os.Chmod(p.node(i), 0o666); err != nil { // whatever the umask
			return err
		}
	}
	s := grpc.NewServer()
	serving := &server{plugin: p, over: ctx.Done()}
	pluginapi.RegisterDevicePluginServer(s, serving)
	registration.RegisterRegistrationServer(s, serving)
	path := p.socket()
	if err := os.Remove(path); err != nil && !errors.Is(err, fs.ErrNotExist) {
		return err
	}
	l, err := net.Listen("unix", path)
	if err != nil {
		return fmt.Errorf("listening for the kubelet: %w", err)
	}
	go func() {
		<-ctx.Done()
		s.Stop()
	}()
	return s.Serve(l)
}

// socket is the plugin's, where the kubelet finds it.
func (p Plugin) socket() string {
	return filepath.Join(p.Registry, strings.NewReplacer("/", "-", ".", "-").Replace(p.Resource)+".sock")
}

// server answers the kubelet.
type server struct {
	pluginapi.UnimplementedDevicePluginServer
	registration.UnimplementedRegistrationServer
	plugin Plugin
	over   <-chan struct{}
}

func (s *server) GetInfo(context.Context, *registration.InfoRequest) (*registration.PluginInfo, error) {
	return &registration.PluginInfo{Type: registration.DevicePlugin, Name: s.plugin.Resource, Endpoint: s.plugin.socket(), SupportedVersions: []string{pluginapi.Version}}, nil
}

func (s *server) NotifyRegistrationStatus(_ context.Context, status *registration.RegistrationStatus) (*registration.RegistrationStatusResponse, error) {
	if !status.PluginRegistered {
		fmt.Fprintln(os.Stderr, "the kubelet does not accept the plugin:", status.Error)
		_ = syscall.Kill(os.Getpid(), syscall.SIGTERM)
	}
	return &registration.RegistrationStatusResponse{}, nil
}

func (s *server) GetDevicePluginOptions(context.Context, *pluginapi.Empty) (*pluginapi.DevicePluginOptions, error) {
	return &pluginapi.DevicePluginOptions{}, nil
}

func (s *server) ListAndWatch(_ *pluginapi.Empty, stream pluginapi.DevicePlugin_ListAndWatchServer) error {
	var all []*pluginapi.Device
	for i := range s.plugin.Devices {
		all = append(all, &pluginapi.Device{ID: UUID(i), Health: pluginapi.Healthy})
	}
	if err := stream.Send(&pluginapi.ListAndWatchResponse{Devices: all}); err != nil {
		return err
	}
	select {
	case <-s.over:
	case <-stream.Context().Done():
	}
	return nil
}

// Allocate says what a container gets. The kubelet calls it once in a pod's life.
func (s *server) Allocate(_ context.Context, r *pluginapi.AllocateRequest) (*pluginapi.AllocateResponse, error) {
	answer := &pluginapi.AllocateResponse{}
	for _, c := range r.ContainerRequests {
		one := &pluginapi.ContainerAllocateResponse{Envs: map[string]string{Variable: strings.Join(c.DevicesIds, ",")}}
		for i := range s.plugin.Devices {
			for _, id := range c.DevicesIds {
				if id == UUID(i) {
					one.Devices = append(one.Devices, &pluginapi.DeviceSpec{HostPath: s.plugin.node(i), ContainerPath: fmt.Sprintf("/dev/nvidia%d", i), Permissions: "rw"})
				}
			}
		}
		answer.ContainerResponses = append(answer.ContainerResponses, one)
	}
	return answer, nil
}

func (s *server) PreStartContainer(context.Context, *pluginapi.PreStartContainerRequest) (*pluginapi.PreStartContainerResponse, error) {
	return &pluginapi.PreStartContainerResponse{}, nil
}

func (s *server) GetPreferredAllocation(context.Context, *pluginapi.PreferredAllocationRequest) (*pluginapi.PreferredAllocationResponse, error) {
	return &pluginapi.PreferredAllocationResponse{}, nil
}
