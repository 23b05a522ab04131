#compdef ibnbd
# SPDX-License-Identifier: GPL-2.0-only
_ibnbd()
{
	local -a lines shown options_
	lines=(${(f)"$(ibnbd complete -- "${(@)words[1,CURRENT-1]}" "$PREFIX" 2>/dev/null)"})
	shown=("${(@)lines/$'\t'/  -- }")
	# (the shell appends a blank to a word, and not to --option=)
	[[ $PREFIX == -* ]] && options_=(-S '')
	(( ${#lines} )) && compadd -l -d shown $options_ -- "${(@)lines%%$'\t'*}"
}

_ibnbd "$@"
