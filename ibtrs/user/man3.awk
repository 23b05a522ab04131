# SPDX-License-Identifier: GPL-2.0-only OR BSD-3-Clause
#
# libibtrs(3) from libibtrs.h, libibnbd(3) from libibnbd.h, in the format of scdoc: the header says
# what each function does, and says it once. Each comment belongs to the declaration below it; declarations without one of their
# own stand with the one above.
#
#   awk -f man3.awk libibtrs.h | scdoc > libibtrs.3
#   awk -v names=1 -f man3.awk libibtrs.h       the functions alone, one a line

function expand(s,	out, n) {
	while ((n = index(s, "\t"))) {
		out = out substr(s, 1, n - 1)
		s = substr(s, n + 1)
		do { out = out " " } while (length(out) % 8)
	}
	return out s
}

# Text as scdoc takes it: nothing but a name behind an @ is marked.
function escape(s) {
	gsub(/[\\*_`#+~<>\[\]|]/, "\\\\&", s)
	while (match(s, /@[a-z]([a-z]|\\_)*/))
		s = substr(s, 1, RSTART - 1) "_" substr(s, RSTART + 1, RLENGTH - 1) "_" \
		    substr(s, RSTART + RLENGTH)
	return s ~ /^-/ ? "\\" s : s
}

function doc_print(	i, s, n) {
	for (i = 1; i <= nr_doc; i++) {
		s = doc[i]
		if (match(s, /^@[a-z_, @]+: /)) {
			n = RLENGTH
			print "\n" escape(substr(s, 1, n - 2))
			print "\t" escape(substr(s, n + 1))
		} else if (s ~ /^\t/) {
			print "\t" escape(substr(s, 2))
		} else if (i == 1 && match(s, /^(struct )?[a-z_]+(\(\))? - /)) {
			n = RLENGTH
			print toupper(substr(s, n + 1, 1)) escape(substr(s, n + 2)) "."
		} else {
			print escape(s)
		}
	}
	nr_doc = 0
}

function code_print() {
	if (code == "")
		return
	print "\n```\n" code "```\n"
	doc_print()
	code = ""
}

# A declaration; with a comment of its own, or by itself, it begins a new block.
function declare(s, alone) {
	if (alone || nr_new) {
		code_print()
		for (nr_doc = 0; nr_doc < nr_new; nr_doc++)
			doc[nr_doc + 1] = new[nr_doc + 1]
		nr_new = 0
	}
	code = code s
}

function head(	all, i) {
	for (i = 1; i <= nr_names; i++)
		all = all ", " name[i]
	gsub(/_/, "\\_", all)
	print lib "(3)\n\n# NAME\n"
	print lib all " - functions of " what
	print "\n# SYNOPSIS\n\n\\#include <" lib ".h>++\ncc prog.c $(pkg-config --cflags --libs " \
	      lib ")"
	print "\n# DESCRIPTION\n\n*" lib "*(7) is the overview. This page has each" \
	      " function and struct."
}

# Twice over the header: the names stand at the head.
NR == 1 {
	lib = FILENAME
	gsub(/.*\/|\.h$/, "", lib)
	what = lib == "libibnbd" ? "disks of an IBNBD server in user space" : \
	       "the IBTRS transport in user space"
	while ((getline line < FILENAME) > 0)
		if (line ~ /^IB[A-Z]+_API/ && match(line, /ib[a-z]+_[a-z_0-9]+\(/))
			name[++nr_names] = substr(line, RSTART, RLENGTH - 1)
	close(FILENAME)
	if (names) {
		for (i = 1; i <= nr_names; i++)
			print name[i]
		exit
	}
	head()
	next
}
/^\/\* ---- / {
	code_print()
	nr_new = 0
	gsub(/^\/\* -+ | -+ \*\/$/, "")
	print "\n# " toupper($0) "\n"
	begun = 1
	next
}
# the comment at the head of the file is section 7's
/^\/\*.*\*\/$/ { sub(/^\/\*+ */, ""); sub(/ *\*\/$/, ""); new[nr_new = 1] = $0; next }
/^\/\*/ { comment = 1; nr_new = 0; next }
comment && /\*\/$/ { comment = 0; if (!begun) nr_new = 0; next }
comment { sub(/^ \* ?/, ""); new[++nr_new] = $0; next }
!begun || /^#(ifdef|endif|ifndef)/ || /^}?$/ { next }
inside { code = code expand($0) "\n"; inside = !/^}/; next }
prototype { code = code substr(expand($0), 11) "\n"; prototype = !/;$/; next }
/^(struct|enum) .*{$/ { declare(expand($0) "\n", 1); inside = 1; next }
/^IB[A-Z]+_API/ {
	sub(/^IB[A-Z]+_API /, "")
	declare($0 "\n")
	prototype = !/;$/
	next
}
/^#define/ { declare(expand($0) "\n") ; next }
END {
	if (names)
		exit
	code_print()
	print "\n# SEE ALSO\n\n*" lib "*(7), " \
	      (lib == "libibnbd" ? "*libibtrs*(3), *nbdkit-ibnbd-plugin*(1)" : "*ibtrs-peer*(1)")
}
