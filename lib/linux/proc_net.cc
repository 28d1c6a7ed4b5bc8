#include "lib/linux/proc_net.h"

#include <fcntl.h>

#include <charconv>
#include <cstring>

#include "lib/base/file.h"

namespace keelson::linux {
namespace {

// By the kernel's TCP_... states; not connections are TIME_WAIT, CLOSE, LISTEN and NEW_SYN_RECV.
bool IsConnection(unsigned state) { return state != 6 && state != 7 && state != 10 && state != 12; }

template <typename T>
bool ParseHex(std::string_view text, T& out) {
  auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), out, 16);
  return error == std::errc() && end == text.data() + text.size();
}

// Removes the next word from a line and returns it.
std::string_view NextWord(std::string_view& line) {
  line.remove_prefix(std::min(line.find_first_not_of(' '), line.size()));
  const std::string_view out = line.substr(0, line.find(' '));
  line.remove_prefix(out.size());
  return out;
}

}  // namespace

Result<ProcNetFile> ProcNetFile::Open(const std::string& name) {
  KEELSON_ASSIGN_OR_RETURN(UniqueFd fd, OpenFile("/proc/thread-self/net/" + name, O_RDONLY));
  return ProcNetFile(std::move(fd), "/proc/net/" + name);
}

Result<std::string> ProcNetFile::Read() const {
  if (::lseek(fd_.get(), 0, SEEK_SET) != 0) return ErrnoError("read " + name_);
  return ReadAll(fd_.get(), name_);
}

std::optional<IpAddress> ParseProcNetAddress(std::string_view text) {
  if (text.size() != 8 && text.size() != 32) return std::nullopt;
  std::string bytes;
  for (size_t at = 0; at < text.size(); at += 8) {
    uint32_t word = 0;
    if (!ParseHex(text.substr(at, 8), word)) return std::nullopt;
    bytes.append(reinterpret_cast<const char*>(&word), sizeof word);
  }
  constexpr std::string_view kMapped("\0\0\0\0\0\0\0\0\0\0\xff\xff", 12);
  if (bytes.starts_with(kMapped)) bytes.erase(0, kMapped.size());
  return IpAddress::FromBytes(bytes);
}

void AddConnectedAddresses(std::string_view text, std::set<IpAddress>& out) {
  while (!text.empty()) {
    std::string_view line = text.substr(0, text.find('\n'));
    text.remove_prefix(std::min(line.size() + 1, text.size()));
    NextWord(line);  // the entry's number
    const std::string_view local = NextWord(line);
    NextWord(line);
    unsigned state = 0;
    if (!ParseHex(NextWord(line), state) || !IsConnection(state)) continue;
    if (auto ip = ParseProcNetAddress(local.substr(0, local.find(':')))) out.insert(*ip);
  }
}

}  // namespace keelson::linux
