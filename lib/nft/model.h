// nftables objects as values: a table as user space describes it, independent of netlink.
//
// All objects belong to one table, so none of them names it. Keys and data of sets are bytes in the form
// that the kernel compares: network order for addresses and ports, host order for marks; each part of a
// concatenation is padded to 4 bytes. Key() builds them.
#pragma once

#include <chrono>
#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <unordered_map>
#include <vector>

#include "lib/base/ip.h"
#include "lib/nft/rule.h"

namespace keelson::nft {

enum class Family : uint8_t { kInet = 1, kIpv4 = 2, kBridge = 7, kIpv6 = 10 };  // NFPROTO_*

struct Table {
  Family family;
  std::string name;
};

enum class HookType { kFilter, kNat };
// NF_INET_*; the bridge family has the same numbers.
enum class HookPoint : uint8_t { kPrerouting, kInput, kForward, kOutput, kPostrouting };

struct Hook {
  HookType type = HookType::kFilter;
  HookPoint point = HookPoint::kPrerouting;
  int priority = 0;
  bool operator==(const Hook&) const = default;
};

struct Chain {
  std::string name;
  std::optional<Hook> hook = {};  // a base chain; policy is accept
  bool operator==(const Chain&) const = default;
};

enum class Type : uint8_t { kIpv4Addr, kIpv6Addr, kInetProto, kInetService, kMark, kIfname, kEtherAddr };
size_t SizeOf(Type type);

// A set; with `data` or `verdicts`, a map.
struct Set {
  std::string name;
  std::vector<Type> key;
  std::vector<Type> data = {};
  bool verdicts = false;
  bool interval = false;                 // elements are ranges of each part: key to key_end
  bool dynamic = false;                  // rules add elements (Update)
  std::chrono::milliseconds timeout{0};  // lifetime of elements; 0: no limit
  bool IsMap() const { return verdicts || !data.empty(); }
  bool operator==(const Set&) const = default;
};

struct Element {
  std::string key;
  std::string key_end = {};  // interval sets
  std::string data = {};     // maps
  std::optional<Verdict> verdict = {};
  std::string comment = {};  // 128 bytes at most; nft(8) shows it
  // In sets with a timeout. Written: how long it lives; 0: as long as the set says. Read: what is left of it.
  std::chrono::milliseconds lifetime{0};
  bool operator==(const Element&) const = default;
};

// Builds one key or datum, part by part:  Key().Ip(address).Proto(6).Port(80).Mark(2).bytes()
class Key {
 public:
  Key& Ip(const IpAddress& address);
  Key& Proto(uint8_t protocol);
  Key& Port(uint16_t port);
  Key& Mark(uint32_t mark);
  Key& Ifname(std::string_view name);        // 15 bytes at most
  Key& EtherAddr(std::string_view address);  // 6 bytes
  std::string bytes() const;                 // a single part is not padded

 private:
  void Append(std::string_view bytes);
  std::string bytes_;
  size_t unpadded_ = 0;
  int parts_ = 0;
};

// The size in bytes of a key or datum of these types.
size_t WidthOf(const std::vector<Type>& types);

// A table's whole contents, wanted or found.
struct Ruleset {
  struct ChainContents {
    Chain chain;
    std::vector<Rule> rules;  // read from the kernel: comments only, no expressions
  };
  struct SetContents {
    Set set;
    std::unordered_map<std::string, Element> elements;  // by key
  };
  Table table;
  std::map<std::string, ChainContents> chains;
  std::map<std::string, SetContents> sets;
};

}  // namespace keelson::nft
