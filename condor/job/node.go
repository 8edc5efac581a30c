package job

import (
	"fmt"
	"math"
	"strconv"

	"github.com/hashicorp/go-multierror"

	"podstarter/classads"
)

// Node is one of the nodes of a job of the parallel universe. Each is a job to its own starter; the shadow starts all of
// them, and ends the others when node 0 has ended.
type Node struct {
	Number int // from 0
	Count  int // of all nodes
	// Spool is a directory of the access point in which the nodes can leave files for each other, by condor_chirp.
	Spool string
	// Awaited: the shadow comes back to it after a lost connection. Any other node is lost with its connection, and the job with
	// it (parallelshadow.cpp:shouldAttemptReconnect).
	Awaited bool
}

// nodeOf reads what the shadow puts into the ad of each node (condor_shadow.V6.1/parallelshadow.cpp).
func nodeOf(ad *classads.Ad) (*Node, error) {
	var n Node
	var problems *multierror.Error
	for _, number := range []struct {
		to   *int
		name string
	}{{&n.Number, attrNode}, {&n.Count, "CurrentHosts"}} {
		v, err := ad.GetInt(number.name)
		if err == nil && (v < 0 || v > math.MaxInt32) {
			err = fmt.Errorf("attribute %s: %d is out of range", number.name, v)
		}
		if err != nil {
			problems = multierror.Append(problems, err)
		}
		*number.to = int(v)
	}
	n.Awaited = n.Number == 0 || ad.StringOr("ParallelShutdownPolicy", "") == "WAIT_FOR_ALL"
	var err error
	if n.Spool, err = ad.GetString("RemoteSpoolDir"); err != nil {
		problems = multierror.Append(problems, err)
	}
	if problems != nil {
		return nil, fmt.Errorf("a node of the parallel universe: %w", problems)
	}
	return &n, nil
}

const attrNode = "Node"

// Publish adds to an update which node it is about; the shadow drops an update without it (parallel_proc.cpp:PublishUpdateAd,
// parallelshadow.cpp:updateFromStarterClassAd).
func (n *Node) Publish(ad *classads.Ad) {
	if n != nil {
		ad.SetInt(attrNode, int64(n.Number))
	}
}

// merge sets what a node is told of its place, over what the job itself asked for
// (condor_starter.V6.1/parallel_proc.cpp:addEnvVars). HTCondor's programs come first in the PATH of a node, for its scripts.
// In a pod the image's own PATH holds, and there is no configuration of HTCondor.
func (n *Node) merge(env *Env, ad *classads.Ad, k Knobs, s Surroundings) error {
	if n == nil {
		return nil
	}
	env.Set("_CONDOR_REMOTE_SPOOL_DIR", n.Spool)
	env.Set("_CONDOR_PROCNO", strconv.Itoa(n.Number))
	env.Set("_CONDOR_NPROCS", strconv.Itoa(n.Count))
	if s.InPod {
		return nil
	}
	own := NewEnv()
	if err := own.MergeAd(ad); err != nil {
		return err
	}
	starters := NewEnv()
	starters.Import(s.Environ, "PATH, CONDOR_CONFIG")
	if bin, ok := k.Lookup("BIN"); ok {
		if rest, ok := own.Get("PATH"); ok {
			bin += ":" + rest
		} else if rest, ok := starters.Get("PATH"); ok {
			bin += ":" + rest
		}
		env.Set("PATH", bin)
	}
	if file, ok := starters.Get("CONDOR_CONFIG"); ok {
		env.Set("CONDOR_CONFIG", file)
	}
	return nil
}
