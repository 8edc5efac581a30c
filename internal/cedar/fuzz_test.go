package cedar

import (
	"bytes"
	"errors"
	"io"
	"strings"
	"testing"
)

// FuzzPackets feeds a stream with bytes and reads values of all kinds, as the
// fuzzer chooses.
func FuzzPackets(f *testing.F) {
	f.Add([]byte("isbadfem"), unhexSeed(vectorP1), false)
	f.Add([]byte("iiae"), unhexSeed(vectorP2), false)
	f.Add([]byte("Fe"), append(header(1, 16), 0, 0, 0, 0, 0, 0, 0, 3, 0, 0, 0, 0, 0, 0, 0, 8), true)
	f.Add([]byte("wre"), []byte{0, 0, 0, 0, 1, 'x', 1, 0, 0, 0, 1, 0}, false)
	f.Add([]byte("s"), append(header(1, 9), 0, 0, 0, 0, 0, 0, 0, 1, 0xad), true)
	f.Fuzz(func(t *testing.T, plan, input []byte, sealed bool) {
		if len(plan) > 64 {
			return
		}
		if sealed {
			input = reseal(t, input)
		}
		s, _ := recorder(input)
		if sealed {
			encrypt(t, s)
		}
		for _, step := range plan {
			var err error
			switch step {
			case 'i':
				_, err = s.GetInt()
			case 'n':
				_, err = s.GetInt32()
			case 's':
				_, err = s.GetString()
			case 'd':
				_, err = s.GetDouble()
			case 'b':
				_, err = s.GetBytes(100)
			case 'a':
				_, err = s.GetAd()
			case 'l':
				_, err = s.getLiterals()
			case 'f':
				_, err = s.GetFile(io.Discard, -1)
			case 'F':
				_, err = s.GetFile(&failing{left: 3}, 1<<20)
			case 'm':
				_, err = s.ReadMessage(make([]byte, 20))
			case 'r':
				_, err = s.Read(make([]byte, 5))
			case 'w':
				err = s.Wait()
			case 'e':
				err = s.EndOfMessage()
			case 'x':
				s.Detach()
			}
			if errors.Is(err, io.ErrNoProgress) {
				t.Fatal("a reader without progress")
			}
		}
		if cap(s.recv.buf) > 4*(len(input)+firstBuffer) {
			t.Errorf("%d bytes of input took a buffer of %d", len(input), cap(s.recv.buf))
		}
	})
}

func unhexSeed(s string) []byte {
	return unhex(&testing.B{}, s)
}

// reseal makes packets that the key opens of packets that are plain, so that
// the fuzzer gets behind the encryption.
func reseal(t *testing.T, input []byte) []byte {
	plain, _ := recorder(input)
	out, sealed := recorder(nil)
	encrypt(t, out)
	for {
		if err := plain.framePacket(); err != nil {
			break
		}
		out.PutBytes(plain.recv.plain)
		last := plain.recv.last
		plain.recv.plain, plain.recv.inMessage = nil, false
		if out.send.open < 0 {
			break
		}
		out.endPacket(last)
	}
	_ = out.Flush()
	return sealed.Bytes()
}

// FuzzAd reads an ad line by line; what was accepted is sent and taken
// from the stream again.
func FuzzAd(f *testing.F) {
	f.Add("A = 1\nB = \"x\\\"y\"\nZKM\nClaimId = \"<1.2.3.4:5>#1#2#k\"\n", "Job", "")
	f.Add("Requirements = TARGET.Memory >= 1 && (x =?= undefined)\nL = { 1,\"a\" }\nN = [ a = 1; b = 2 ]", "", "(unknown type)")
	f.Fuzz(func(t *testing.T, text, myType, targetType string) {
		lines := strings.Split(strings.TrimSuffix(text, "\n"), "\n")
		if len(lines) > 100 || strings.Contains(text, "\x00") || strings.Contains(myType+targetType, "\x00") {
			return
		}
		s, out := recorder(nil)
		n := int64(len(lines))
		for _, l := range lines {
			if l == zkm {
				n--
			}
		}
		s.PutInt(n)
		for _, l := range append(lines, myType, targetType) {
			s.PutString(l)
		}
		if s.EndMessage() != nil {
			return
		}
		in, _ := recorder(out.Bytes())
		ad, err := in.GetAd()
		if err != nil {
			return
		}
		s, out = recorder(nil)
		s.PutAd(ad)
		if err := s.EndMessage(); err != nil {
			return // a value may hold what a line cannot
		}
		// Whether the text means the same again is for package classads to
		// say; what matters here is that the reader stays in step.
		in, _ = recorder(out.Bytes())
		again, err := in.GetAd()
		var bad *AdError
		if err != nil && !errors.As(err, &bad) {
			t.Fatalf("an ad that was read cannot be read again: %v\n%s", err, ad.FormatOld())
		}
		if err := in.EndOfMessage(); err != nil {
			t.Fatalf("%v behind\n%s", err, ad.FormatOld())
		}
		if again != nil && again.Len() > ad.Len() {
			t.Fatalf("an ad has grown:\n%s\n%s", ad.FormatOld(), again.FormatOld())
		}
	})
}

// FuzzSinful parses addresses; what is printed parses to the same again.
func FuzzSinful(f *testing.F) {
	for _, s := range []string{
		"<127.0.0.1:9618?addrs=127.0.0.1-9618+[--1]-9618&alias=h&noUDP&sock=startd_1_43af>",
		"<1.1.1.1:5?CCBID=2.2.2.2:9618#1%202.2.2.3:9618#2&PrivAddr=%3c10.0.0.1:7%3fsock%3dx%3e&PrivNet=lan&sock=x>",
		"<[::1]:9618>", "h:1;a=b;c", "<%%%>", "<a?b>",
	} {
		f.Add(s, "lan")
	}
	f.Fuzz(func(t *testing.T, text, network string) {
		s, err := ParseSinful(text)
		if err != nil {
			return
		}
		again, err := ParseSinful(s.String())
		if err != nil || again.String() != s.String() {
			t.Fatalf("%q prints as %q, which parses as %v, %v", text, s, again, err)
		}
		r, err := s.Route(Network{Private: network})
		if err == nil && (r.Host == "" || r.Port == 0) {
			t.Fatalf("%q leads to %q", text, r)
		}
		s.WithSock("x")
	})
}

// FuzzClaimID parses claim ids and imports their sessions.
func FuzzClaimID(f *testing.F) {
	f.Add("family:abc#" + familyInfo + vectorKey)
	f.Add(claimPart + "#4711")
	f.Add(`a#[SessionExpires=1900000000;ValidCommands="1,2,x";]k`)
	f.Fuzz(func(t *testing.T, id string) {
		c, err := ParseClaimID(id)
		if err != nil {
			return
		}
		if c.Secret() != id || !c.Matches(id) {
			t.Fatalf("%q was taken apart to %q", id, c.Secret())
		}
		c.Startd()
		s, err := ImportSession(id, "u@d", Daemon)
		if err != nil {
			return
		}
		again, err := ImportSession(s.Export("25.14.1"), "u@d", Daemon)
		if err != nil || again.ID != s.ID || !bytes.Equal(again.key.bytes(), s.key.bytes()) {
			t.Fatalf("%q is exported as another session: %v", id, err)
		}
	})
}

// FuzzInherited parses descriptions of sockets.
func FuzzInherited(f *testing.F) {
	f.Add(updateSocket)
	f.Add(callSocket)
	_, rest, _ := strings.Cut(endpointSocket, "*")
	f.Add(rest)
	f.Fuzz(func(t *testing.T, text string) {
		d, err := parseSerialized(text)
		if err != nil {
			return
		}
		if d.fd < 0 || d.timeout < 0 || d.key != nil && len(d.key) != keySize {
			t.Fatalf("%q was taken as %d, %v", text, d.fd, d.timeout)
		}
	})
}

// FuzzHandshake lets a server answer bytes.
func FuzzHandshake(f *testing.F) {
	f.Add(unhexSeed(vectorP1))
	f.Add(append(header(1, 8), 0, 0, 0, 0, 0, 0, 0xea, 0x6b))
	f.Fuzz(func(t *testing.T, input []byte) {
		secret := vectorKey
		session, err := ImportSessionParts("s1", "", secret, "u@d", Read)
		if err != nil {
			t.Fatal(err)
		}
		table := NewSessions()
		if err := table.Add(session); err != nil {
			t.Fatal(err)
		}
		server := &Server{Sessions: table, Version: ownVersion}
		s, _ := recorder(input)
		call, h, err := server.accept(t.Context(), s)
		if err != nil {
			return
		}
		_, _ = server.run(t.Context(), call, h)
	})
}
