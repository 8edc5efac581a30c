package classads

// operator is an operator of the language.
type operator uint8

const (
	opNone operator = iota
	opLess
	opLessEqual
	opNotEqual
	opEqual
	opGreaterEqual
	opGreater
	opIs
	opIsnt
	opPlus
	opMinus
	opAdd
	opSubtract
	opMultiply
	opDivide
	opModulus
	opNot
	opOr
	opAnd
	opBitNot
	opBitOr
	opBitXor
	opBitAnd
	opShiftLeft
	opShiftRight
	opShiftRightUnsigned
	opParentheses
	opSubscript
	opElvis
	opTernary
)

// operatorTexts are the operators as HTCondor prints them
// (src/classad/sink.cpp), in the new and in the old syntax.
var operatorTexts = [...]struct{ modern, old string }{
	opLess:               {" < ", " < "},
	opLessEqual:          {" <= ", " <= "},
	opNotEqual:           {" != ", " != "},
	opEqual:              {" == ", " == "},
	opGreaterEqual:       {" >= ", " >= "},
	opGreater:            {" > ", " > "},
	opIs:                 {" is ", " =?= "},
	opIsnt:               {" isnt ", " =!= "},
	opPlus:               {" +", " +"},
	opMinus:              {" -", " -"},
	opAdd:                {" + ", " + "},
	opSubtract:           {" - ", " - "},
	opMultiply:           {" * ", " * "},
	opDivide:             {" / ", " / "},
	opModulus:            {" % ", " % "},
	opNot:                {" !", " !"},
	opOr:                 {" || ", " || "},
	opAnd:                {" && ", " && "},
	opBitNot:             {" ~", " ~"},
	opBitOr:              {" | ", " | "},
	opBitXor:             {" ^ ", " ^ "},
	opBitAnd:             {" & ", " & "},
	opShiftLeft:          {" << ", " << "},
	opShiftRight:         {" >> ", " >> "},
	opShiftRightUnsigned: {" >>> ", " >>> "},
	opElvis:              {" ?: ", " ?: "},
	opTernary:            {" ?: ", " ?: "},
}
