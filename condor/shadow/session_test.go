package shadow

import (
	"context"
	"encoding/json"
	"fmt"
	"log/slog"
	"net"
	"os"
	"strings"
	"testing"

	"golang.org/x/sys/unix"

	"podstarter/internal/cedar"
)

// encrypted returns the two ends of a connection in the middle of its life, as
// a startd hands it down, with matching states.
func encrypted(t testing.TB) (mine, theirs *cedar.Stream) {
	t.Helper()
	a, b := pair(t)
	const key = "000102030405060708090a0b0c0d0e0f101112131415161718191a1b1c1d1e1f"
	ivA, ivB := strings.Repeat("A1", 16), strings.Repeat("B2", 16)
	adopt := func(conn net.Conn, sent, received, out, in string) *cedar.Stream {
		text := fmt.Sprintf("%d*3*20*1*24*0*submit-side@matchsession**0*<127.0.0.1:9545>*64*3*1*%s%s%s%s*%s*1*1*1*1*64*%s*0*",
			descriptor(t, conn), sent, received, out, in, key, strings.Repeat("00", 64))
		s, err := cedar.Adopt(text)
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { s.Close() })
		return s
	}
	return adopt(a, "01000000", "02000000", ivA, ivB), adopt(b, "02000000", "01000000", ivB, ivA)
}

// descriptor duplicates the descriptor of a connection's socket.
func descriptor(t testing.TB, conn net.Conn) int {
	t.Helper()
	f, err := conn.(interface{ File() (*os.File, error) }).File()
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	fd, err := unix.Dup(int(f.Fd()))
	if err != nil {
		t.Fatal(err)
	}
	conn.Close()
	return fd
}

func TestGetSecSessionInfo(t *testing.T) {
	mine, peer := encrypted(t)
	c := New(mine, quiet)
	defer c.Close()
	key := strings.Repeat("5e", 32)
	info := `[Integrity="YES";Encryption="YES";CryptoMethods="BLOWFISH";CryptoMethodsList="AES.BLOWFISH.3DES";ShortVersion="25.14.1";]`
	go func() {
		n, _ := peer.GetInt()
		a, _ := peer.GetString()
		b, _ := peer.GetString()
		if err := peer.EndOfMessage(); err != nil || n != 288 || a != "" || b != "" {
			t.Errorf("%d %q %q %v", n, a, b, err)
		}
		peer.PutInt(1)
		for _, id := range []string{"<127.0.0.1:9618>#1#2", "filetrans.<127.0.0.1:9618>#1#2"} {
			peer.PutString(id)
			peer.PutString(info)
			peer.PutSecret(key)
		}
		peer.EndMessage()
	}()
	got, err := c.GetSecSessionInfo(context.Background())
	if err != nil {
		t.Fatal(err)
	}
	s, err := got.FileTransfer.Import(cedar.Daemon)
	if err != nil || s.ID != "filetrans.<127.0.0.1:9618>#1#2" || s.User != SubmitSide {
		t.Errorf("%v, %v", s, err)
	}
	if s, err := got.Reconnect.Import(cedar.Daemon); err != nil || s.ID != "<127.0.0.1:9618>#1#2" {
		t.Errorf("%v, %v", s, err)
	}
	if _, err := (SessionParts{}).Import(); err == nil {
		t.Error("a missing session was imported")
	}
	text, _ := json.Marshal(got)
	var log strings.Builder
	slog.New(slog.NewTextHandler(&log, nil)).Info("x", "parts", got.Reconnect, "all", got, "cred", Credential{Service: "s", data: &[]byte{'5', 'e', '5', 'e'}})
	for _, shown := range []string{fmt.Sprintf("%v %+v %#v %s", got, got, got, got), string(text), log.String()} {
		if strings.Contains(shown, "5e5e") {
			t.Errorf("the secret is shown: %s", shown)
		}
	}
}

func TestRefusedSecSessionInfo(t *testing.T) {
	mine, peer := encrypted(t)
	c := New(mine, quiet)
	defer c.Close()
	go func() {
		peer.ReadMessage(make([]byte, 100))
		peer.PutInt(-1)
		peer.PutInt(1)
		peer.EndMessage()
	}()
	if _, err := c.GetSecSessionInfo(context.Background()); err == nil || !strings.Contains(err.Error(), "operation not permitted") {
		t.Errorf("error %v", err)
	}
}

func TestShouldVacate(t *testing.T) {
	for codes, want := range map[[2]int]bool{
		{0, 0}: true, {-1, 0}: true, {1009, 0}: true, {1000, 5}: true, {12, -1000}: true, {12, -1001}: true,
		{12, 2}: false, {12, -999}: false, {999, 0}: false, {21, 0}: false,
	} {
		if got := ShouldVacate(codes[0], codes[1]); got != want {
			t.Errorf("%v: %v", codes, got)
		}
	}
}
