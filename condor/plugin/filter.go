package plugin

import (
	"strings"

	"podstarter/classads"
)

// reportTypes are the attributes of a report that the shadow gets, with their
// types; an attribute of another type is left out
// (condor_starter.V6.1/filter.cpp: filterPluginResults).
var reportTypes = map[string]classads.Kind{
	"transfersuccess":       classads.Bool,
	"transfererror":         classads.String,
	"transferprotocol":      classads.String,
	"transfertype":          classads.String,
	"transferfilename":      classads.String,
	"transferfilebytes":     classads.Int,
	"transfertotalbytes":    classads.Int,
	"transferstarttime":     classads.Int,
	"transferendtime":       classads.Int,
	"connectiontimeseconds": classads.Real,
	"transferurl":           classads.String,
	"transfererrordata":     classads.List,
	"developerdata":         classads.Record,
	"transferdata":          classads.List,
}

// errorTypes are those of the elements of TransferErrorData
// (filterTransferErrorData).
var errorTypes = map[string]classads.Kind{
	"intermediateservererrortype": classads.String,
	"intermediateserver":          classads.String,
	"errortype":                   classads.String,
	"pluginversion":               classads.String,
	"pluginlaunched":              classads.Bool,
	"failedname":                  classads.String,
	"failuretype":                 classads.String,
	"failedserver":                classads.String,
	"shouldrefresh":               classads.Bool,
	"errorcode":                   classads.Int,
	"errorstring":                 classads.String,
	"retryable":                   classads.Int,
	"developerdata":               classads.Record,
}

// filterReport returns the part of a report that the shadow gets.
func filterReport(ad *classads.Ad) *classads.Ad {
	out := filter(ad, reportTypes)
	e, ok := out.Lookup("TransferErrorData")
	if !ok {
		return out
	}
	var kept []*classads.Expr
	items, _ := e.Eval(classads.Env{}).Exprs()
	for _, item := range items {
		if v, ok := literal(item); ok {
			if nested, ok := v.Ad(); ok {
				kept = append(kept, classads.AdExpr(filter(nested, errorTypes)))
			}
		}
	}
	out.SetList("TransferErrorData", kept...)
	return out
}

func filter(ad *classads.Ad, types map[string]classads.Kind) *classads.Ad {
	out := classads.NewAd()
	for name, e := range ad.All() {
		want, ok := types[strings.ToLower(name)]
		if !ok {
			continue
		}
		if v, ok := literal(e); ok && v.Kind() == want {
			out.Insert(name, e)
		}
	}
	return out
}

// literal returns the value of an expression that is a literal: a scalar, or a
// list or an ad as written.
func literal(e *classads.Expr) (classads.Value, bool) {
	text := e.String()
	if text == "" {
		return classads.Value{}, false
	}
	switch c := text[0]; {
	case c == '{', c == '[':
		v := e.Eval(classads.Env{})
		return v, (v.Kind() == classads.List) == (c == '{') && (v.Kind() == classads.Record) == (c == '[')
	case c == '"', c == '-', c == '+', '0' <= c && c <= '9', letter(c):
		v := e.Eval(classads.Env{})
		switch v.Kind() {
		case classads.Bool, classads.Int, classads.Real, classads.String:
			return v, classads.Literal(v).String() == text
		}
	}
	return classads.Value{}, false
}
