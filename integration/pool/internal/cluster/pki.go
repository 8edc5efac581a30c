package cluster

import (
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/tls"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/json"
	"encoding/pem"
	"fmt"
	"math/big"
	"net"
	"os"
	"path/filepath"
	"strings"
	"time"

	"podstarter/integration/pool/internal/statedir"
)

// PKI is a directory of certificates and keys, NAME.crt and NAME.key.
type PKI struct {
	Dir string
}

// Path is the path of a file of the directory.
func (p PKI) Path(name string) string { return filepath.Join(p.Dir, name) }

// Make makes all certificates, once for the life of the directory: an authority, the API server's, an administrator's, the
// node's and the one that the API server shows to the kubelet, and the key pair that signs service account tokens. The
// addresses are those of the API server beside loopback; they may be empty.
func (p PKI) Make(node string, addresses ...string) error {
	done := p.Path("done-" + node + strings.Join(addresses, ","))
	if _, err := os.Stat(done); err == nil {
		return nil
	}
	ca, caKey, err := p.authority("podstarter-test-ca")
	if err != nil {
		return err
	}
	for _, c := range []struct {
		name string
		cert x509.Certificate
	}{
		{"apiserver", x509.Certificate{
			Subject:  pkix.Name{CommonName: "kube-apiserver"},
			DNSNames: []string{"localhost", "kubernetes", "kubernetes.default", "kubernetes.default.svc"},
			// The first address of the service range is the API server's own service.
			IPAddresses: append([]net.IP{net.IPv4(127, 0, 0, 1), net.IPv4(10, 0, 0, 1)}, parse(addresses)...),
			ExtKeyUsage: []x509.ExtKeyUsage{x509.ExtKeyUsageServerAuth},
		}},
		{Admin, client(Admin, "system:masters")},
		{nodeFile, nodeClient(node)},
		{"kubelet-client", client("kube-apiserver-kubelet-client", "system:masters")},
	} {
		if err := p.issue(c.name, c.cert, ca, caKey); err != nil {
			return err
		}
	}
	if err := p.serviceAccountKey(); err != nil {
		return err
	}
	return statedir.WriteFile(done, nil, 0o600)
}

// nodeFile is the name of a kubelet's own certificate.
const nodeFile = "node"

func nodeClient(node string) x509.Certificate { return client("system:node:"+node, "system:nodes") }

func parse(addresses []string) []net.IP {
	var ips []net.IP
	for _, text := range addresses {
		if ip := net.ParseIP(text); ip != nil {
			ips = append(ips, ip)
		}
	}
	return ips
}

// A NodeIdentity is what a node must have to join the cluster, in PEM.
type NodeIdentity struct {
	CA, Certificate, Key []byte
}

// Invite makes the identity of one more node, or returns the one that it has made before.
func (p PKI) Invite(node string) (NodeIdentity, error) {
	var id NodeIdentity
	if err := p.issueOnce(node, nodeClient(node)); err != nil {
		return id, err
	}
	for name, to := range map[string]*[]byte{"ca.crt": &id.CA, node + ".crt": &id.Certificate, node + ".key": &id.Key} {
		text, err := os.ReadFile(p.Path(name))
		if err != nil {
			return id, fmt.Errorf("reading the identity of %s: %w", node, err)
		}
		*to = text
	}
	return id, nil
}

// issueOnce makes a certificate of the authority that the directory has, unless it is there.
func (p PKI) issueOnce(name string, cert x509.Certificate) error {
	if _, err := os.Stat(p.Path(name + ".key")); err == nil {
		return nil
	}
	pair, err := tls.LoadX509KeyPair(p.Path("ca.crt"), p.Path("ca.key"))
	if err != nil {
		return fmt.Errorf("reading the authority: %w", err)
	}
	key, ok := pair.PrivateKey.(*ecdsa.PrivateKey)
	if !ok {
		return fmt.Errorf("reading the authority: its key is a %T", pair.PrivateKey)
	}
	return p.issue(name, cert, pair.Leaf, key)
}

// Accept writes this node's identity into the directory.
func (p PKI) Accept(id NodeIdentity) error {
	for _, f := range []struct {
		name string
		text []byte
		mode os.FileMode
	}{{"ca.crt", id.CA, 0o644}, {nodeFile + ".crt", id.Certificate, 0o644}, {nodeFile + ".key", id.Key, 0o600}} {
		if err := statedir.WriteFile(p.Path(f.name), f.text, f.mode); err != nil {
			return err
		}
	}
	return nil
}

func client(name, group string) x509.Certificate {
	return x509.Certificate{
		Subject:     pkix.Name{CommonName: name, Organization: []string{group}},
		ExtKeyUsage: []x509.ExtKeyUsage{x509.ExtKeyUsageClientAuth},
	}
}

// MakeServer makes, once for the life of the directory, an authority of that name and a certificate, server.crt, for a server
// on the loopback.
func (p PKI) MakeServer(authority string) error {
	done := p.Path("done")
	if _, err := os.Stat(done); err == nil {
		return nil
	}
	ca, caKey, err := p.authority(authority)
	if err != nil {
		return err
	}
	err = p.issue("server", x509.Certificate{
		Subject:     pkix.Name{CommonName: "podstarter test server"},
		DNSNames:    []string{"localhost"},
		IPAddresses: []net.IP{net.IPv4(127, 0, 0, 1)},
		ExtKeyUsage: []x509.ExtKeyUsage{x509.ExtKeyUsageServerAuth},
	}, ca, caKey)
	if err != nil {
		return err
	}
	return statedir.WriteFile(done, nil, 0o600)
}

func (p PKI) authority(name string) (*x509.Certificate, *ecdsa.PrivateKey, error) {
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		return nil, nil, fmt.Errorf("making the authority's key: %w", err)
	}
	cert := x509.Certificate{
		Subject: pkix.Name{CommonName: name}, IsCA: true, BasicConstraintsValid: true,
		KeyUsage: x509.KeyUsageCertSign | x509.KeyUsageDigitalSignature,
	}
	if err := p.write("ca", cert, nil, key, key); err != nil {
		return nil, nil, err
	}
	text, err := os.ReadFile(p.Path("ca.crt"))
	if err != nil {
		return nil, nil, fmt.Errorf("making the authority: %w", err)
	}
	block, _ := pem.Decode(text)
	parsed, err := x509.ParseCertificate(block.Bytes)
	if err != nil {
		return nil, nil, fmt.Errorf("making the authority: %w", err)
	}
	return parsed, key, nil
}

func (p PKI) issue(name string, cert x509.Certificate, ca *x509.Certificate, caKey *ecdsa.PrivateKey) error {
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		return fmt.Errorf("making the key of %s: %w", name, err)
	}
	cert.KeyUsage = x509.KeyUsageDigitalSignature
	return p.write(name, cert, ca, key, caKey)
}

// write signs cert with the parent's key and writes it and its own key. A nil parent means that it signs itself.
func (p PKI) write(name string, cert x509.Certificate, parent *x509.Certificate, key, parentKey *ecdsa.PrivateKey) error {
	serial, err := rand.Int(rand.Reader, new(big.Int).Lsh(big.NewInt(1), 120))
	if err != nil {
		return fmt.Errorf("making the certificate of %s: %w", name, err)
	}
	cert.SerialNumber = serial
	cert.NotBefore = time.Now().Add(-time.Hour)
	cert.NotAfter = time.Now().AddDate(1, 0, 0)
	if parent == nil {
		parent = &cert
	}
	der, err := x509.CreateCertificate(rand.Reader, &cert, parent, &key.PublicKey, parentKey)
	if err != nil {
		return fmt.Errorf("making the certificate of %s: %w", name, err)
	}
	if err := statedir.WriteFile(p.Path(name+".crt"), pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: der}), 0o644); err != nil {
		return err
	}
	return p.writeKey(name+".key", key)
}

func (p PKI) writeKey(name string, key *ecdsa.PrivateKey) error {
	der, err := x509.MarshalECPrivateKey(key)
	if err != nil {
		return fmt.Errorf("writing the key %s: %w", name, err)
	}
	return statedir.WriteFile(p.Path(name), pem.EncodeToMemory(&pem.Block{Type: "EC PRIVATE KEY", Bytes: der}), 0o600)
}

func (p PKI) serviceAccountKey() error {
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		return fmt.Errorf("making the key for service account tokens: %w", err)
	}
	if err := p.writeKey("sa.key", key); err != nil {
		return err
	}
	der, err := x509.MarshalPKIXPublicKey(&key.PublicKey)
	if err != nil {
		return fmt.Errorf("making the key for service account tokens: %w", err)
	}
	return statedir.WriteFile(p.Path("sa.pub"), pem.EncodeToMemory(&pem.Block{Type: "PUBLIC KEY", Bytes: der}), 0o644)
}

// Kubeconfig writes a kubeconfig file for the holder of one of the client certificates.
func (p PKI) Kubeconfig(path, name, server string) error {
	type m = map[string]any
	text, err := json.MarshalIndent(m{
		"apiVersion": "v1", "kind": "Config", "current-context": "pool",
		"clusters": []m{{"name": "pool", "cluster": m{"server": server, "certificate-authority": p.Path("ca.crt")}}},
		"users":    []m{{"name": name, "user": m{"client-certificate": p.Path(name + ".crt"), "client-key": p.Path(name + ".key")}}},
		"contexts": []m{{"name": "pool", "context": m{"cluster": "pool", "user": name, "namespace": Namespace}}},
	}, "", "\t")
	if err != nil {
		return fmt.Errorf("writing the kubeconfig of %s: %w", name, err)
	}
	return statedir.WriteFile(path, text, 0o600)
}
