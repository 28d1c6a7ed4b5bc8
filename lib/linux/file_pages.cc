#include "lib/linux/file_pages.h"

#include <link.h>
#include <sys/mman.h>
#include <unistd.h>

#include <cstdint>

namespace keelson::linux {

namespace {

// Segments that may not be written are as in their files. (What the loader has relocated is in those that may.)
int ReleaseObject(dl_phdr_info* object, size_t, void*) {
  const uintptr_t page = static_cast<uintptr_t>(::sysconf(_SC_PAGESIZE));
  for (int i = 0; i < object->dlpi_phnum; ++i) {
    const auto& segment = object->dlpi_phdr[i];
    if (segment.p_type != PT_LOAD || (segment.p_flags & PF_W) != 0) continue;
    const uintptr_t begin = (object->dlpi_addr + segment.p_vaddr) & ~(page - 1);
    const uintptr_t end = (object->dlpi_addr + segment.p_vaddr + segment.p_filesz) & ~(page - 1);
    // The kernel's own object (vdso) has no file, and nothing to let go of.
    if (begin >= end) continue;
    // NOLINTNEXTLINE(performance-no-int-to-ptr): the loader gives numbers
    (void)::madvise(reinterpret_cast<void*>(begin), end - begin, MADV_DONTNEED);
  }
  return 0;
}

}  // namespace

void ReleaseFilePages() { ::dl_iterate_phdr(ReleaseObject, nullptr); }

}  // namespace keelson::linux
