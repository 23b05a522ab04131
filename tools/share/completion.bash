# SPDX-License-Identifier: GPL-2.0-only
# bash completion for ibnbd
_ibnbd()
{
	local cur=${COMP_WORDS[COMP_CWORD]} word
	COMPREPLY=()
	# (compgen -W would expand a name like $(reboot))
	while IFS=$'\t' read -r word _; do
		[[ $word == "$cur"* ]] && COMPREPLY+=("$word")
	done < <(ibnbd complete -- "${COMP_WORDS[@]:0:COMP_CWORD}" "$cur" 2>/dev/null | sort -u)
	[[ ${#COMPREPLY[@]} -eq 1 && ${COMPREPLY[0]} == *= ]] && compopt -o nospace
	return 0
}

complete -F _ibnbd ibnbd
