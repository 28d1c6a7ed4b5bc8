#include "lib/netlink/ipvs_list.h"

#include <netinet/in.h>

#include <algorithm>
#include <charconv>
#include <optional>

#include "lib/base/text.h"

namespace keelson::netlink {
namespace {

template <typename T>
bool ParseNumber(std::string_view text, T& out, int base = 10) {
  auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), out, base);
  return error == std::errc() && end == text.data() + text.size();
}

// "0A600001:0050" or "[fd96:0000:...:0001]:0050", in network order.
bool ParseAt(std::string_view text, IpAddress& ip, uint16_t& port) {
  const size_t colon = text.rfind(':');
  if (colon == std::string_view::npos || !ParseNumber(text.substr(colon + 1), port, 16)) return false;
  std::string_view host = text.substr(0, colon);
  if (host.starts_with('[') && host.ends_with(']')) {
    Result<IpAddress> parsed = IpAddress::Parse(host.substr(1, host.size() - 2));
    if (parsed) ip = *parsed;
    return parsed.has_value();
  }
  uint32_t word = 0;
  if (host.size() != 8 || !ParseNumber(host, word, 16)) return false;
  word = htonl(word);
  ip = IpAddress::FromBytes({reinterpret_cast<const char*>(&word), sizeof word});
  return true;
}

std::optional<uint8_t> ProtocolOf(std::string_view name) {
  if (name == "TCP") return IPPROTO_TCP;
  if (name == "UDP") return IPPROTO_UDP;
  if (name == "SCTP") return IPPROTO_SCTP;
  return std::nullopt;
}

// TCP  0A600001:0050 rr ops persistent 2700000 FFFFFFFF
bool ParseServer(const std::vector<std::string_view>& words, uint8_t protocol, ListedServer& out) {
  out.address.protocol = protocol;
  if (words.size() < 3 || !ParseAt(words[1], out.address.ip, out.address.port)) return false;
  out.scheduler = words[2];
  out.sticky = std::find(words.begin() + 3, words.end(), "persistent") != words.end();
  return true;
}

//   -> 0A010001:1F90      Masq    1      0          0
bool ParseDestination(const std::vector<std::string_view>& words, ListedServer::Listed& out) {
  if (words.size() < 4 || !ParseAt(words[1], out.destination.ip, out.destination.port)) return false;
  out.translates = words[2] == "Masq";
  return ParseNumber(words[3], out.destination.weight);
}

}  // namespace

Result<std::vector<ListedServer>> ParseIpvsList(std::string_view text) {
  std::vector<ListedServer> out;
  bool known = false;  // whether the following destinations belong to a parsed server
  for (int number = 0; !text.empty(); ++number) {
    const std::string_view line = text.substr(0, text.find('\n'));
    text.remove_prefix(std::min(line.size() + 1, text.size()));
    const std::vector<std::string_view> words = SplitWords(line, " ");
    if (number < 3 || words.empty()) continue;  // headings
    bool understood = true;
    if (words[0] == "->") {
      if (known) understood = ParseDestination(words, out.back().destinations.emplace_back());
    } else if (std::optional<uint8_t> protocol = ProtocolOf(words[0])) {
      known = true;
      understood = ParseServer(words, *protocol, out.emplace_back());
    } else {
      known = false;
    }
    if (!understood) return Error(Code::kInvalid, "/proc/net/ip_vs has \"" + std::string(line) + "\"");
  }
  return out;
}

Result<IpvsList> IpvsList::Open() {
  KEELSON_ASSIGN_OR_RETURN(linux::ProcNetFile file, linux::ProcNetFile::Open("ip_vs"));
  return IpvsList(std::move(file));
}

Result<std::vector<ListedServer>> IpvsList::Read() const {
  KEELSON_ASSIGN_OR_RETURN(std::string text, file_.Read());
  return ParseIpvsList(text);
}

}  // namespace keelson::netlink
