// SPDX-License-Identifier: GPL-2.0-only
/* doctor: must modules be signed here, and has the firmware the key that DKMS signs with? */
#include <stdlib.h>
#include <string.h>
#include "tools/cmd/doctor.h"
#include "tools/conf/file.h"
#include "tools/host/mapping.h"

#define SECURE_EFI	"/sys/firmware/efi/efivars/"
#define SECURE_MOK_OF	"-605dab50-e046-4300-abb6-3dd810dd8b23"
#define SECURE_KEY	"/var/lib/dkms/mok.pub"
#define SECURE_IMPORT	"mokutil --import " SECURE_KEY
#define SECURE_SIGN	"sign the modules with a key that the kernel has (on EFI: " SECURE_IMPORT ", reboot)"

static struct file_text secure_read(const char *name)
{
	char *path __free(free) = sysfs_root("%s", name);

	return file_read(path, FILE_HOSTS, false);
}

bool secure_boot(void)
{
	struct file_text f __free(file_free) =
		secure_read(SECURE_EFI "SecureBoot-8be4df61-93ca-11d2-aa0d-00e098032b8c");

	return f.text && f.len >= 5 && f.text[4] == 1;	/* attributes come first */
}

/* Is the certificate in this variable of the firmware? */
static bool secure_has(const char *variable, const struct file_text *key)
{
	struct file_text f __free(file_free) = secure_read(variable);

	return f.text && memmem(f.text, f.len, key->text, key->len);
}

bool secure_finds(struct doctor *d, const char *refusal, const char *rebuild)
{
	struct file_text key __free(file_free) = { 0 };
	bool has, known;
	char *hint;

	if (!secure_boot())
		return false;
	key = secure_read(SECURE_KEY);
	has = key.text && key.len;
	known = has && (secure_has(SECURE_EFI "MokListRT" SECURE_MOK_OF, &key) ||
			secure_has("/sys/firmware/efi/mok-variables/MokListRT", &key) ||
			secure_has(SECURE_EFI "db-d719b2cb-3d3a-4596-a3bc-dad00e67656f", &key));
	if (known)
		hint = say_fmt("the firmware has the key of DKMS, which these modules were not signed with: %s",
			       rebuild);
	else if (!has)
		hint = say_fmt("DKMS has no key yet (%s) and makes one when it builds: %s; then: ibnbd doctor",
			       SECURE_KEY, rebuild);
	else if (secure_has(SECURE_EFI "MokNew" SECURE_MOK_OF, &key))
		hint = say_dup(
			"mokutil has left the key for the next boot: reboot, and at the console choose \"Enroll MOK\", \"Continue\", \"Yes\", and give the password that you chose");
	else
		hint = say_dup(
			SECURE_IMPORT " (choose a password for one use), reboot, and at the console choose \"Enroll MOK\"");
	if (refusal)
		doctor_find(d, "secure-boot", DOCTOR_ERROR, hint,
			    "Secure Boot is on and the kernel refuses our modules: %s", refusal);
	else if (!known)
		doctor_find(d, "secure-boot", DOCTOR_WARNING, hint,
			    "Secure Boot is on: modules without an enrolled key are refused");
	else
		free(hint);
	return true;
}

const char *secure_only(const char **hint)
{
	char *sys __free(free) = sysfs_path("."), *proc __free(free) = sysfs_root("/proc"),
	     *enforce __free(free) = sysfs_attr(sys, "module/module/parameters/sig_enforce"),
	     *lockdown __free(free) = sysfs_attr(sys, "kernel/security/lockdown"),
	     *cmdline __free(free) = sysfs_attr(proc, "cmdline");
	const char *why = NULL;

	if (enforce && !strcmp(enforce, "Y")) {
		why = "takes only modules that are signed with a key it has (module.sig_enforce)";
		*hint = cmdline && strstr(cmdline, "module.sig_enforce") ?
				"take module.sig_enforce off the kernel's command line and reboot, or " SECURE_SIGN :
				SECURE_SIGN ", or boot a kernel without CONFIG_MODULE_SIG_FORCE";
	} else if (lockdown && !strstr(lockdown, "[none]")) {
		why = strstr(lockdown, "[integrity]") ?
			      "is locked down (lockdown=integrity) and takes signed modules only" :
			      "is locked down (lockdown=confidentiality) and takes signed modules only";
		*hint = cmdline && strstr(cmdline, "lockdown=") ?
				"take lockdown= off the kernel's command line and reboot, or " SECURE_SIGN :
				SECURE_SIGN "; nothing ends a lockdown but a reboot into a kernel without it";
	}
	return why;
}

char *secure_refusal(void)
{
	char *line = mapping_kmsg_find("oading of ", "is rejected");

	if (!line)
		line = mapping_kmsg_find("ockdown: ", "unsigned module loading");
	if (!line)
		line = mapping_kmsg_find("ibnbd", "Key was rejected");
	return line;
}
