# SPDX-License-Identifier: GPL-2.0-only
# fish completion for ibnbd
function __ibnbd_words
	set -l before (commandline -opc)
	set -l word (commandline -ct)
	ibnbd complete -- $before "$word" 2>/dev/null
end

complete -c ibnbd -f -a '(__ibnbd_words)'
