package classads

import "time"

type scope struct{ ad *Ad }
type evaluator struct{}
type builtin struct{}

type Limits struct{ Depth, Steps, Bytes int }

type Env struct {
	My, Target *Ad
	Now        func() time.Time
	Random     func() float64
	Limits     Limits
}

func (a *Ad) Eval(name string, env Env) Value { return Value{} }
func (e *Expr) Eval(env Env) Value            { return evalNode(e.n, env) }
func lookupBuiltin(string) *builtin           { return nil }
func timeLiteral(name, s string) (node, bool) { return nil, false }
func evalIn(n node, sc *scope) Value          { return n.eval(nil, sc) }
func evalNode(n node, env Env) Value          { return n.eval(nil, nil) }
func (v Value) truth() (bool, bool)           { return v.num != 0, numeric(v.kind) }

func (l *literal) eval(*evaluator, *scope) Value       { return l.Value }
func (*attrRef) eval(*evaluator, *scope) Value         { return Value{} }
func (*operation) eval(*evaluator, *scope) Value       { return Value{} }
func (*call) eval(*evaluator, *scope) Value            { return Value{} }
func (n *listNode) eval(_ *evaluator, sc *scope) Value { return Value{kind: List, list: n, sc: sc} }
func (n *adNode) eval(*evaluator, *scope) Value        { return Value{kind: Record, sc: &scope{n.ad}} }

func appendAbsTime(dst []byte, unix int64, off int) []byte { return dst }
func appendRelTime(dst []byte, s float64) []byte           { return dst }
