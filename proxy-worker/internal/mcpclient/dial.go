package mcpclient

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/durable-mcp/durable-mcp/tool-sdk/contract"
)

// Dial connects to a server and finds the newest revision that both speak: the
// modern probe first (basic/lifecycle of 2026-07-28), then the older handshake.
// A server that never heard of the probe may refuse it, ignore it or end at it.
// A failure leaves no session and no process behind. Its error is an [*Error]
// with [NotSent], or ctx's.
func Dial(ctx context.Context, t Transport, o Options) (*Session, error) {
	o = o.withDefaults()
	if v := o.ProtocolVersion; v != "" && !slices.Contains(Versions(), v) {
		return nil, &Error{Message: fmt.Sprintf("protocol version %.40q is unknown, the known ones are %s", v, strings.Join(Versions(), ", "))}
	}
	d := &dialer{session: newSession(o), transport: t, pinned: o.ProtocolVersion, doing: "connecting"}
	bounded, stop := context.WithTimeout(ctx, o.StartupTimeout)
	defer stop()
	err := d.dial(bounded)
	if err == nil {
		return d.session, nil
	}
	said := d.stderr()
	d.drop()
	d.session.close()
	if ctx.Err() != nil {
		return nil, ctx.Err()
	}
	e := notConnected(err)
	if bounded.Err() != nil {
		e = &Error{
			Retryable: true,
			Message:   fmt.Sprintf("connect: the server was not ready within the startup timeout of %v (%s)", o.StartupTimeout, d.doing),
			Cause:     err,
		}
	}
	if len(said) > 0 { // of the server's own making: for the operator only
		lines := "its last lines on stderr: " + strings.Join(said, " | ")
		if e.Detail != "" {
			lines = e.Detail + "; " + lines
		}
		e.Detail = lines
	}
	return nil, e
}

// dialer makes one session.
type dialer struct {
	session   *Session
	transport Transport
	pinned    string
	probed    bool   // the link has seen the modern probe
	doing     string // for the message of a timeout
}

func (d *dialer) dial(ctx context.Context) error {
	if err := d.open(ctx); err != nil {
		return err
	}
	var offer string
	switch {
	case d.pinned == "":
		done, next, err := d.probe(ctx)
		if done || err != nil {
			return err
		}
		offer = next
	case Modern(d.pinned):
		return d.discover(ctx, d.pinned)
	default:
		offer = d.pinned
	}
	return d.initialize(ctx, offer)
}

// probe tries the modern revisions. It returns the revision to offer in the older
// handshake where the server speaks none of them, on a link that is fit for it.
func (d *dialer) probe(ctx context.Context) (done bool, offer string, err error) {
	o := d.session.options
	probe, stop := context.WithTimeout(ctx, min(o.ProbeTimeout, o.StartupTimeout/2))
	defer stop()
	asked, again := modernVersions[0], false
	for range len(modernVersions) + 1 {
		err = d.discover(probe, asked)
		var other *otherVersions
		switch {
		case err == nil:
			return true, "", nil
		case ctx.Err() != nil:
			return false, "", ctx.Err()
		case errors.As(err, &other):
			next := newestOf(other.supported)
			switch {
			case len(other.supported) == 0: // it answers everything alike
				return false, newestLegacy, nil
			case next == "":
				return false, "", err
			}
			if !Modern(next) {
				return false, next, nil
			}
			if next == asked && again {
				return false, newestLegacy, nil // it contradicts itself
			}
			asked, again = next, next == asked // which another replica may not
			continue
		}
		break
	}
	var e *Error
	if errors.As(err, &e) && e.Outcome == NotSent && !e.Lost {
		return false, "", err // it was not reached: another word would not be either
	}
	if probe.Err() != nil {
		o.Logger.Warn("the server is silent on the modern probe; the older handshake follows. A pinned protocol version saves the wait")
	} else {
		o.Logger.Debug("the server does not answer the modern probe", "error", err)
	}
	if d.transport.FreshAfterProbe() && (probe.Err() != nil || d.lost()) {
		err = d.reopen(ctx)
	} else {
		err = nil
	}
	return false, newestLegacy, err
}

// otherVersions is the answer of a server that speaks other revisions.
type otherVersions struct {
	requested string
	supported []string
}

func (e *otherVersions) Error() string {
	return fmt.Sprintf("the server speaks %s, not %s", quoted(e.supported), e.requested)
}

// quoted lists the revisions that a server named, bounded.
func quoted(versions []string) string {
	if len(versions) == 0 {
		return "no protocol version"
	}
	s := make([]string, 0, len(versions))
	for _, v := range versions {
		if len(s) == 8 {
			s = append(s, "…")
			break
		}
		s = append(s, revision(v))
	}
	return strings.Join(s, ", ")
}

var isRevision = regexp.MustCompile(`^[0-9]{4}-[0-9]{2}-[0-9]{2}$`)

// revision quotes one that a server named. What is none may be anything, such as a
// header that it was sent, and is not repeated.
func revision(v string) string {
	if isRevision.MatchString(v) {
		return strconv.Quote(v)
	}
	return "one that is no date"
}

// discover makes the session a modern one if the server speaks the version.
func (d *dialer) discover(ctx context.Context, version string) error {
	d.doing, d.probed = "no answer to "+methodDiscover, true
	s := d.session
	if err := s.discover(ctx, version); err != nil {
		return err
	}
	s.link.Negotiated(version, false)
	s.listen()
	return nil
}

// discover asks the server what it is. A server that does not speak the version is an
// error of [otherVersions].
func (s *Session) discover(ctx context.Context, version string) error {
	var params, meta contract.Object
	s.setModern(&meta, version, json.RawMessage("{}"))
	params.Set("_meta", meta.JSON())
	result, err := s.exchange(ctx, methodDiscover, version, params.JSON())
	var pe *contract.ProtocolError
	if errors.As(err, &pe) && pe.Code == codeUnsupportedVersion {
		data, _ := contract.ParseObject(pe.Data)
		return &otherVersions{requested: version, supported: texts(data.Get("supported"))}
	}
	if err != nil {
		return err
	}
	o, err := contract.ParseObject(result)
	if err != nil {
		return Malformed(methodDiscover, err)
	}
	supported := texts(o.Get("supportedVersions"))
	if !slices.Contains(supported, version) {
		return &otherVersions{requested: version, supported: supported}
	}
	m, _ := contract.ParseObject(o.Get("_meta"))
	s.setServer(server(version, m.Get(metaServerInfo), &o))
	return nil
}

// Renew returns what the server says of itself, asked anew if it last did longer ago
// than age: one that keeps no sessions (2026-07-28) may have been replaced. Where it no
// longer speaks the session's revision the error is [Error.Lost].
func (s *Session) Renew(ctx context.Context, age time.Duration) (Server, error) {
	sv := s.Server()
	if !sv.Stateless || time.Since(*s.told.Load()) < age {
		return sv, nil
	}
	err := s.discover(ctx, sv.ProtocolVersion)
	if other, ok := errors.AsType[*otherVersions](err); ok {
		return sv, otherServer(sv.ProtocolVersion, other)
	}
	if err == nil {
		s.listen() // to what it tells now
	}
	return s.Server(), err
}

// initialize is the handshake of the older revisions, all or nothing.
func (d *dialer) initialize(ctx context.Context, offer string) error {
	d.doing = "no answer to " + methodInitialize
	s := d.session
	var params contract.Object
	params.Set("protocolVersion", contract.Quote(offer))
	params.Set("capabilities", json.RawMessage("{}"))
	params.Set("clientInfo", s.clientInfo())
	result, err := s.exchange(ctx, methodInitialize, "", params.JSON())
	if err != nil && d.probed && d.transport.FreshAfterProbe() && d.lost() && ctx.Err() == nil {
		// It answered the probe and ended all the same.
		if err = d.reopen(ctx); err == nil {
			result, err = s.exchange(ctx, methodInitialize, "", params.JSON())
		}
	}
	if err != nil {
		return err
	}
	o, err := contract.ParseObject(result)
	if err != nil {
		return Malformed(methodInitialize, err)
	}
	var chosen string
	if json.Unmarshal(o.Get("protocolVersion"), &chosen) != nil || chosen == "" {
		return Malformed(methodInitialize, errors.New("it names no protocolVersion"))
	}
	if !slices.Contains(legacyVersions, chosen) || d.pinned != "" && chosen != d.pinned {
		return &Error{Message: fmt.Sprintf("the server chose protocol version %s, the client offered %s and speaks %s",
			revision(chosen), offer, strings.Join(d.accepted(), ", "))}
	}
	s.setServer(server(chosen, o.Get("serverInfo"), &o))
	s.link.Negotiated(chosen, s.options.Changed != nil)
	d.doing = "sending " + methodInitialized
	return s.link.Notify(ctx, Message{Method: methodInitialized, Data: encode("", methodInitialized, nil)})
}

// accepted lists the revisions that the older handshake may end in.
func (d *dialer) accepted() []string {
	if d.pinned != "" {
		return []string{d.pinned}
	}
	return legacyVersions
}

// exchange is a request of the handshake.
func (s *Session) exchange(ctx context.Context, method, version string, params json.RawMessage) (json.RawMessage, error) {
	id := s.nextID()
	raw, err := s.link.Exchange(ctx, Message{
		ID: id, Method: method, Version: version, Data: encode(id, method, params),
	})
	if err != nil {
		return nil, err
	}
	return decodeResult(method, raw)
}

func (d *dialer) open(ctx context.Context) (err error) {
	d.session.link, err = d.transport.Open(ctx, d.session)
	return err
}

func (d *dialer) reopen(ctx context.Context) error {
	d.drop()
	d.probed = false
	return d.open(ctx)
}

func (d *dialer) drop() {
	if d.session.link != nil {
		d.session.link.Close()
		d.session.link = nil
	}
}

// stderr returns the last that a server process wrote to it.
func (d *dialer) stderr() []string {
	if l, ok := d.session.link.(interface{ Stderr() []string }); ok {
		return l.Stderr()
	}
	return nil
}

// lost reports whether the link has ended.
func (d *dialer) lost() bool {
	select {
	case <-d.session.link.Done():
		return true
	default:
		return false
	}
}

func server(version string, info json.RawMessage, result *contract.Object) Server {
	sv := Server{ProtocolVersion: version, Stateless: Modern(version)}
	if contract.TypeName(info) == "an object" {
		sv.Info = info
	}
	if c := result.Get("capabilities"); contract.TypeName(c) == "an object" {
		sv.Capabilities = c
	}
	_ = json.Unmarshal(result.Get("instructions"), &sv.Instructions) // of another type: none
	return sv
}

// notConnected turns what ended a handshake into the error of a connection: no
// call was sent.
func notConnected(err error) *Error {
	if e, ok := errors.AsType[*Error](err); ok {
		c := *e
		c.Outcome, c.Lost, c.Message = NotSent, false, "connect: "+e.Message
		return &c
	}
	if pe, ok := errors.AsType[*contract.ProtocolError](err); ok {
		// Its message may repeat a header or a variable that the server was given.
		return &Error{Message: fmt.Sprintf("connect: the server refused the handshake with JSON-RPC error %d", pe.Code), Cause: err}
	}
	return &Error{Message: "connect: " + err.Error(), Cause: err}
}

// texts returns the strings of an array.
func texts(raw json.RawMessage) []string {
	var s []string
	if json.Unmarshal(raw, &s) != nil {
		return nil
	}
	return s
}
