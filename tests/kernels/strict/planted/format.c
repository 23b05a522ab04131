// SPDX-License-Identifier: GPL-2.0-only
/* says: format not a string literal */
int planted_format(struct kobject *kobj, const char *name);
int planted_format(struct kobject *kobj, const char *name)
{
	return kobject_add(kobj, NULL, name);
}
