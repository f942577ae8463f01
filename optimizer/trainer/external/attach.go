package external

import (
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strconv"
	"sync"
	"time"

	"atoll/optimizer/trainer"
)

// Attach is what --learner says for a training script that runs already and comes to the node by
// its folder.
const Attach = "attach"

// attachFile, in a learner's folder, tells a script where its node listens.
const attachFile = "attach.json"

// Attached says how a script attaches to the node of a learner's folder.
func Attached(dir string) string {
	if whole, err := filepath.Abs(dir); err == nil {
		dir = whole
	}
	return fmt.Sprintf("a training script: let it call run = atoll.join(model, folder=%s)", strconv.Quote(filepath.Dir(dir)))
}

// notice is the content of the file. Whoever reads it may connect, so it is its owner's alone.
type notice struct {
	Address  string `json:"address,omitempty"`
	Token    string `json:"token,omitempty"`
	Attached string `json:"attached,omitempty"` // the script that is there already
}

// ErrNobody says that no script is attached.
var ErrNobody = fmt.Errorf("no training script is attached: %w", trainer.ErrLost)

// ErrLeft says that a script has left in order: Params have all that it stepped.
var ErrLeft = fmt.Errorf("it has left in order: %w", trainer.ErrLost)

// errLeaves is the answer of a script that wants to leave, in place of a step.
var errLeaves = errors.New("the training script leaves")

// door is where scripts that run already come to their node, one at a time. Each wait has a port
// and a token of its own.
type door struct {
	path   string
	log    func(line string)
	once   sync.Once
	ended  chan struct{} // closed by close
	closed chan struct{} // closed when the door's goroutine is done

	mu     sync.Mutex
	caller *session      // that came, until take
	left   chan struct{} // closed when nobody reads the caller's connection
	inside *session      // that the node has taken, until it is over
}

// openDoor begins to wait for a script.
func openDoor(path string, log func(line string)) (*door, error) {
	d := &door{path: path, log: log, ended: make(chan struct{}), closed: make(chan struct{})}
	if err := d.write(notice{}); err != nil {
		return nil, fmt.Errorf("tell scripts of this node: %w", err)
	}
	go d.run()
	return d, nil
}

// retryAfter is the pause after a wait that failed, as with a full disk.
const retryAfter = time.Second

// run waits for one script after the other.
func (d *door) run() {
	defer close(d.closed)
	for {
		s, err := d.wait()
		switch {
		case err != nil:
			d.log("cannot wait for a training script: " + err.Error())
			select {
			case <-d.ended:
				return
			case <-time.After(retryAfter):
			}
		case s == nil:
			return
		default:
			d.host(s)
		}
	}
}

// wait returns the next script that comes with the token, or nil when the door closes.
func (d *door) wait() (*session, error) {
	l, token, err := listen()
	if err != nil {
		return nil, err
	}
	r := receive(l, token)
	defer r.close()
	if err := d.write(notice{Address: l.Addr().String(), Token: token}); err != nil {
		return nil, err
	}
	defer closeWhen(d.ended, l)()
	for {
		s, err := r.next()
		switch {
		case err == nil:
			if err = d.write(notice{Attached: s.name()}); err == nil {
				return s, nil
			}
			s.kill()
			return nil, err
		case !errors.Is(err, errDeaf):
			d.log(err.Error())
		case d.isClosing():
			return nil, nil
		default:
			return nil, err
		}
	}
}

func (d *door) isClosing() bool {
	select {
	case <-d.ended:
		return true
	default:
		return false
	}
}

// host keeps a script until the node takes it, or it leaves before that, and then until it is over.
func (d *door) host(s *session) {
	left := make(chan struct{})
	d.mu.Lock()
	d.caller, d.left = s, left
	d.mu.Unlock()
	defer d.leave()
	go func() {
		defer close(left)
		s.conn.Read(make([]byte, 1)) // it says nothing before it is asked: this is its end, or take's deadline
	}()
	select {
	case <-left:
	case <-d.ended:
	}
	if !d.wasTaken(s) {
		s.stop()
	}
	<-s.over
}

func (d *door) leave() {
	d.mu.Lock()
	defer d.mu.Unlock()
	d.caller, d.inside = nil, nil
}

// wasTaken says whether the node has taken a script. If not, it is not there any more.
func (d *door) wasTaken(s *session) bool {
	d.mu.Lock()
	defer d.mu.Unlock()
	d.caller = nil
	return d.inside == s
}

// accept returns the script that came, if there is one.
func (d *door) accept() *session {
	d.mu.Lock()
	s, left := d.caller, d.left
	if s != nil {
		d.caller, d.inside = nil, s
	}
	d.mu.Unlock()
	if s != nil {
		s.conn.SetReadDeadline(time.Now())
		<-left // from here on the answers are the node's
	}
	return s
}

// empty says that no script is there.
func (d *door) empty() bool {
	d.mu.Lock()
	defer d.mu.Unlock()
	return d.caller == nil && d.inside == nil
}

// write replaces the file.
func (d *door) write(n notice) error {
	b, err := json.Marshal(n)
	if err != nil {
		return err
	}
	f, err := os.CreateTemp(filepath.Dir(d.path), ".attach-*") // readable by its owner alone
	if err != nil {
		return err
	}
	_, err = f.Write(b)
	if err = errors.Join(err, f.Close()); err == nil {
		err = os.Rename(f.Name(), d.path)
	}
	if err != nil {
		os.Remove(f.Name())
	}
	return err
}

// close ends the wait. The session of a script that was taken has to be over.
func (d *door) close() (err error) {
	d.once.Do(func() {
		close(d.ended)
		<-d.closed
		err = os.Remove(d.path)
	})
	return err
}
