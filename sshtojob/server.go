package sshtojob

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"net"
	"strconv"
	"sync"
	"time"

	"golang.org/x/crypto/ssh"
)

const (
	// loginTime is how long a client may take to prove that it has the key.
	loginTime = 2 * time.Minute
	// maxChannels limits the sessions and forwarded connections that are open
	// at a time.
	maxChannels = 64
	// dialTime limits how long a forwarded connection may take to open.
	dialTime = 20 * time.Second
)

// serve is the ssh server on one connection, until that ends.
func serve(conn net.Conn, keys pair, up *starter) error {
	config := &ssh.ServerConfig{
		ServerVersion: "SSH-2.0-podstarter",
		// Any user name is accepted: there is one user, and one key.
		PublicKeyCallback: func(_ ssh.ConnMetadata, key ssh.PublicKey) (*ssh.Permissions, error) {
			if !bytes.Equal(key.Marshal(), keys.client.Marshal()) {
				return nil, errors.New("not the key of this visit")
			}
			return nil, nil
		},
	}
	config.AddHostKey(keys.host)
	if err := conn.SetDeadline(time.Now().Add(loginTime)); err != nil {
		return err
	}
	server, channels, requests, err := ssh.NewServerConn(conn, config)
	if err != nil {
		return fmt.Errorf("greet the ssh client: %w", err)
	}
	defer server.Close()
	if err := conn.SetDeadline(time.Time{}); err != nil {
		return err
	}
	go ssh.DiscardRequests(requests)
	free := make(chan struct{}, maxChannels)
	var open sync.WaitGroup
	for c := range channels {
		select {
		case free <- struct{}{}:
		default:
			_ = c.Reject(ssh.ResourceShortage, "too many sessions and forwarded connections are open")
			continue
		}
		open.Go(func() {
			defer func() { <-free }()
			switch c.ChannelType() {
			case "session":
				session(server, c, up)
			case "direct-tcpip":
				forward(c)
			default:
				_ = c.Reject(ssh.UnknownChannelType, "only sessions and forwarded TCP connections are supported")
			}
		})
	}
	open.Wait()
	return nil
}

// forward connects a channel of ssh -L. The containers of a pod share their
// network, so this process can reach the job's ports.
func forward(c ssh.NewChannel) {
	var to struct {
		Host     string
		Port     uint32
		FromHost string
		FromPort uint32
	}
	if err := ssh.Unmarshal(c.ExtraData(), &to); err != nil || to.Port == 0 || to.Port > 65535 {
		_ = c.Reject(ssh.ConnectionFailed, "no address")
		return
	}
	conn, err := net.DialTimeout("tcp", net.JoinHostPort(to.Host, strconv.Itoa(int(to.Port))), dialTime)
	if err != nil {
		_ = c.Reject(ssh.ConnectionFailed, err.Error())
		return
	}
	defer conn.Close()
	channel, requests, err := c.Accept()
	if err != nil {
		return
	}
	defer channel.Close()
	go ssh.DiscardRequests(requests)
	var both sync.WaitGroup
	both.Go(func() {
		_, _ = io.Copy(conn, channel)
		if half, ok := conn.(interface{ CloseWrite() error }); ok {
			_ = half.CloseWrite()
		}
	})
	both.Go(func() {
		_, _ = io.Copy(channel, conn)
		_ = channel.CloseWrite()
	})
	both.Wait()
}
