# SPDX-License-Identifier: GPL-2.0-only OR BSD-3-Clause
#
# Included by the Makefile of a library, after compat/user.mk. It has set LIB, OBJ, LINK (what it is
# linked with), PROGRAM (installed with it) and MANUALS.

SONAME	:= $(LIB).so.0
INCDIR	?= $(PREFIX)/include
BINDIR	?= $(PREFIX)/bin
MAN3	:= $(TOP)/ibtrs/user/man3.awk
OURS	+= -fPIC -fvisibility=hidden -pthread

all: $(O)/$(SONAME) $(O)/$(LIB).a $(PROGRAM) $(if $(shell command -v scdoc),man)

$(O)/$(SONAME): $(OBJ) $(LIB).map
	$(Q)$(CC) $(CFLAGS) $(LDFLAGS) -shared -Wl,-soname,$(SONAME) -Wl,-z,defs \
		-Wl,--version-script=$(LIB).map -o $@ $(OBJ) $(LINK)

$(O)/$(LIB).a: $(OBJ)
	$(Q)rm -f $@ && $(AR) rcs $@ $^

man: $(addprefix $(O)/man/,$(MANUALS))
# the functions are described in the header alone
$(O)/man/$(LIB).3: $(LIB).h $(MAN3)
	$(Q)mkdir -p $(@D)
	$(Q)awk -f $(MAN3) $< >$@.scd && scdoc <$@.scd >$@.tmp && mv $@.tmp $@
$(O)/man/%: $(TOP)/docs/man/%.scd
	$(Q)mkdir -p $(@D)
	$(Q)scdoc <$< >$@.tmp && mv $@.tmp $@

install: all
	install -d $(DESTDIR)$(LIBDIR)/pkgconfig $(DESTDIR)$(INCDIR) $(DESTDIR)$(BINDIR)
	install -m 755 $(O)/$(SONAME) $(DESTDIR)$(LIBDIR)/
	ln -sf $(SONAME) $(DESTDIR)$(LIBDIR)/$(LIB).so
	install -m 644 $(O)/$(LIB).a $(DESTDIR)$(LIBDIR)/
	install -m 644 $(LIB).h $(DESTDIR)$(INCDIR)/
	sed -e 's|@LIBDIR@|$(LIBDIR)|; s|@INCDIR@|$(INCDIR)|; s|@VERSION@|$(VERSION)|' \
		-e 's|@LIBS@|$(LINK)|' \
		$(LIB).pc.in > $(DESTDIR)$(LIBDIR)/pkgconfig/$(LIB).pc
	install -m 755 $(PROGRAM) $(DESTDIR)$(BINDIR)/
	for m in $(MANUALS); do [ ! -e $(O)/man/$$m ] || \
		install -D -m 644 -t $(DESTDIR)$(MANDIR)/man$${m##*.} $(O)/man/$$m || exit 1; done
	[ ! -e $(O)/man/$(LIB).3 ] || for f in $$(awk -v names=1 -f $(MAN3) $(LIB).h); do \
		ln -sf $(LIB).3 $(DESTDIR)$(MANDIR)/man3/$$f.3 || exit 1; done

-include $(OBJ:.o=.d)
