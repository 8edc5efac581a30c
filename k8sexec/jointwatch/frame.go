package jointwatch

import (
	"bytes"
	"encoding/binary"
	"fmt"
	"io"

	corev1 "k8s.io/api/core/v1"
)

// A frame is the length of what follows, four bytes with the first one highest, and a pod
// in Protocol Buffers. A frame of length 0 says that the leader lives.

// maxPod bounds a frame: etcd takes no object of more than 1.5 MiB.
const maxPod = 4 << 20

var beat = []byte{0, 0, 0, 0}

// encode makes the frame of a pod.
func encode(pod *corev1.Pod) ([]byte, error) {
	size := pod.Size()
	if size > maxPod {
		return nil, fmt.Errorf("pass the pod on: it has %d bytes, more than %d", size, maxPod)
	}
	frame := make([]byte, 4+size)
	binary.BigEndian.PutUint32(frame, uint32(size)) //nolint:gosec // bounded above
	if _, err := pod.MarshalToSizedBuffer(frame[4:]); err != nil {
		return nil, fmt.Errorf("encode the pod: %w", err)
	}
	return frame, nil
}

// decode reads one frame; the pod is nil if it only says that the leader lives.
func decode(r io.Reader) (*corev1.Pod, error) {
	var head [4]byte
	if _, err := io.ReadFull(r, head[:]); err != nil {
		return nil, err
	}
	size := int64(binary.BigEndian.Uint32(head[:]))
	switch {
	case size == 0:
		return nil, nil
	case size > maxPod:
		return nil, fmt.Errorf("%w: a frame of %d bytes, more than %d", errFrame, size, maxPod)
	}
	var data bytes.Buffer // grows with what comes
	if n, err := io.CopyN(&data, r, size); err != nil {
		return nil, fmt.Errorf("a frame ends after %d of %d bytes: %w", n, size, err)
	}
	pod := new(corev1.Pod)
	if err := pod.Unmarshal(data.Bytes()); err != nil {
		return nil, fmt.Errorf("%w: %w", errFrame, err)
	}
	return pod, nil
}
