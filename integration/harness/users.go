package harness

import (
	"context"
	"fmt"
	"path/filepath"
)

// User is a user of the submit side, who submits jobs.
type User struct {
	Name     string
	UID, GID int
	Home     string // on the submit side
	Visible  string // the same directory on this machine
}

// asUser is the pool program's verb that runs a command as the pool's user.
func (p *Pool) asUser() []string {
	if p.User.Name == "" {
		return []string{"ap"}
	}
	return []string{"ap", "--user", p.User.Name}
}

// learnUser reads who the pool's user is.
func (p *Pool) learnUser(ctx context.Context) error {
	said, err := p.AP(ctx, "sh", "-c", `echo "$(id -un) $(id -u) $(id -g) $HOME"`)
	if err != nil {
		return err
	}
	if _, err := fmt.Sscan(said, &p.User.Name, &p.User.UID, &p.User.GID, &p.User.Home); err != nil {
		return fmt.Errorf("reading %q: %w", said, err)
	}
	// The submit side's /home is there.
	p.User.Visible = filepath.Join(p.State, "home", filepath.Base(p.User.Home))
	return nil
}

// As is the same pool for another user, who gets an account and a home on the submit side
// if the pool has none of that name. Jobs are submitted, and tools run, as that user. An execution
// point knows nothing of such users.
func (p *Pool) As(ctx context.Context, name string) (*Pool, error) {
	const account = `id "$0" >/dev/null 2>&1 || {
	useradd --no-create-home --home-dir "/home/$0" --shell /bin/bash "$0" &&
	install -d -o "$0" -g "$0" -m 0700 "/home/$0"
}`
	if _, err := p.APRoot(ctx, nil, "sh", "-c", account, name); err != nil {
		return nil, fmt.Errorf("making the user %s: %w", name, err)
	}
	other := *p
	other.User = User{Name: name}
	if err := other.learnUser(ctx); err != nil {
		return nil, fmt.Errorf("asking who %s is: %w", name, err)
	}
	return &other, nil
}
