// SPDX-License-Identifier: GPL-2.0-only
/* says: ignoring return value of */
void planted_result(struct bio *bio, struct page *page);
void planted_result(struct bio *bio, struct page *page)
{
	bio_add_page(bio, page, PAGE_SIZE, 0);
}
