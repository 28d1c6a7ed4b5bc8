// Rules as short programs over sixteen 4-byte registers, the way the kernel's nf_tables virtual machine
// runs them: a rule loads values into adjacent registers, and a lookup's key starts at a given register.
//
//   Rule pick("pick-3");
//   pick.Load(0, Field::kIpDaddr).Load(1, Field::kL4Proto).Load(2, Field::kDestinationPort)
//       .Random(3, 3).Map(0, "endpoints", 0).Dnat(Family::kIpv4, 0, 1);
//
// When a comparison or lookup fails, the rule ends early and the rest of it has no effect. Do not use a
// map's datum as (part of) the key of another lookup: the kernel can do that, but nft(8) up to 1.0.6
// crashes when it lists such a rule.
#pragma once

#include <chrono>
#include <cstdint>
#include <string>
#include <string_view>
#include <utility>
#include <variant>
#include <vector>

namespace keelson::nft {

enum class Family : uint8_t;

struct Verdict {
  enum class Kind { kAccept, kDrop, kReturn, kJump, kGoto };
  Kind kind = Kind::kAccept;
  std::string chain = {};  // jump and goto
  bool operator==(const Verdict&) const = default;
};
inline Verdict Goto(std::string chain) { return {Verdict::Kind::kGoto, std::move(chain)}; }
inline Verdict Jump(std::string chain) { return {Verdict::Kind::kJump, std::move(chain)}; }

enum class Field {
  kIpSaddr,   // 1 register
  kIpDaddr,   // 1 register
  kIp6Saddr,  // 4 registers
  kIp6Daddr,  // 4 registers
  kL4Proto,
  kSourcePort,
  kDestinationPort,
  kNfProto,  // meta nfproto: 2 IPv4, 10 IPv6
  kMark,
  kCtState,           // bits: 1 invalid, 2 established, 4 related, 8 new
  kCtStatus,          // bits: 0x10 source NATed, 0x20 destination NATed
  kCtOriginalDaddr,   // destination of the connection's first packet; 1 register, IPv4
  kCtOriginal6Daddr,  // 4 registers, IPv6
  kDaddrType,         // fib daddr type: 1 unicast, 2 local, ... (RTN_*)
  kSaddrType,
  kIifName,     // 4 registers; in a bridge table the port
  kEtherSaddr,  // 2 registers
  kEtherType,   // bridge tables: of the frame; 2 bytes in network order
  kIcmpType,    // of ICMP or ICMPv6: first byte of the transport header
};
int RegistersOf(Field field);

namespace expr {
struct Load {
  int reg;
  Field field;
};
// reg = offset + a number below modulus
struct Random {
  int reg;
  uint32_t modulus, offset;
};
struct Compare {
  int reg;
  bool equal;
  std::string value;
};
// reg = (reg & mask) ^ xor_with
struct Mask {
  int reg;
  std::string mask, xor_with;
};
struct Immediate {
  int reg;
  std::string value;
};
// Continues if the key is in the set (with negate: if it is not).
struct Lookup {
  int key;
  std::string set;
  bool negate;
};
// Puts the key's datum into the registers from `out` on; ends the rule if the key is absent.
struct Map {
  int key;
  std::string set;
  int out;
};
struct VerdictMap {
  int key;
  std::string set;
};
struct SetMark {
  int reg;
};
// Bridge tables, hook prerouting: gives the frame another destination (6 bytes from `reg` on).
struct SetEtherDaddr {
  int reg;
};
// Whom the frame counts as sent to: one byte, PACKET_* of <linux/if_packet.h>.
struct SetPacketType {
  int reg;
};
// Adds the key to a dynamic set, or renews its timeout.
struct Update {
  int key;
  std::string set;
  std::chrono::milliseconds timeout;
};
// Removes the key from a dynamic set; an absent key is fine.
struct Forget {
  int key;
  std::string set;
};
struct Dnat {
  Family family;
  int address, port;
};
// Uses random source ports between those in registers `first` and `last`; -1: any port.
struct Masquerade {
  int first = -1, last = -1;
};
// Rejects with a TCP reset, or with "port unreachable" of the packet's family.
struct Reject {
  bool tcp_reset;
};
struct Finish {
  Verdict verdict;
};
struct Counter {};
// Ends the rule for packets beyond `per_second`, but for `burst` of them at once.
struct Limit {
  uint64_t per_second;
  uint32_t burst;
};
// Hands the packet's headers to the listener of an nfnetlink_log group.
struct Log {
  uint16_t group;
  std::string prefix;  // 127 bytes at most
};
}  // namespace expr

using Expr = std::variant<expr::Load, expr::Random, expr::Compare, expr::Mask, expr::Immediate, expr::Lookup,
                          expr::Map, expr::VerdictMap, expr::SetMark, expr::SetEtherDaddr,
                          expr::SetPacketType, expr::Update, expr::Forget, expr::Dnat, expr::Masquerade,
                          expr::Reject, expr::Finish, expr::Counter, expr::Limit, expr::Log>;

class Rule {
 public:
  explicit Rule(std::string chain) : chain_(std::move(chain)) {}

  Rule& Load(int reg, Field field) { return Add(expr::Load{reg, field}); }
  Rule& Random(int reg, uint32_t modulus, uint32_t offset = 0) {
    return Add(expr::Random{reg, modulus, offset});
  }
  Rule& Immediate(int reg, std::string value) { return Add(expr::Immediate{reg, std::move(value)}); }
  Rule& Equal(int reg, std::string value) { return Add(expr::Compare{reg, true, std::move(value)}); }
  Rule& NotEqual(int reg, std::string value) { return Add(expr::Compare{reg, false, std::move(value)}); }
  Rule& Mask(int reg, std::string mask, std::string xor_with) {
    return Add(expr::Mask{reg, std::move(mask), std::move(xor_with)});
  }
  Rule& InSet(int key, std::string set) { return Add(expr::Lookup{key, std::move(set), false}); }
  Rule& NotInSet(int key, std::string set) { return Add(expr::Lookup{key, std::move(set), true}); }
  Rule& Map(int key, std::string set, int out) { return Add(expr::Map{key, std::move(set), out}); }
  Rule& VerdictMap(int key, std::string set) { return Add(expr::VerdictMap{key, std::move(set)}); }
  Rule& SetMark(int reg) { return Add(expr::SetMark{reg}); }
  Rule& SetEtherDaddr(int reg) { return Add(expr::SetEtherDaddr{reg}); }
  Rule& SetPacketType(int reg) { return Add(expr::SetPacketType{reg}); }
  Rule& Update(int key, std::string set, std::chrono::milliseconds timeout) {
    return Add(expr::Update{key, std::move(set), timeout});
  }
  Rule& Forget(int key, std::string set) { return Add(expr::Forget{key, std::move(set)}); }
  Rule& Dnat(Family family, int address, int port) { return Add(expr::Dnat{family, address, port}); }
  Rule& Masquerade() { return Add(expr::Masquerade{}); }
  Rule& Masquerade(int first, int last) { return Add(expr::Masquerade{first, last}); }
  Rule& RejectTcpReset() { return Add(expr::Reject{true}); }
  Rule& RejectUnreachable() { return Add(expr::Reject{false}); }
  Rule& Finish(Verdict verdict) { return Add(expr::Finish{std::move(verdict)}); }
  Rule& Counter() { return Add(expr::Counter{}); }
  Rule& Limit(uint64_t per_second, uint32_t burst) { return Add(expr::Limit{per_second, burst}); }
  Rule& Log(uint16_t group, std::string prefix) { return Add(expr::Log{group, std::move(prefix)}); }

  // Loads a field and compares: continues if any of `bits` is set in `field`.
  Rule& AnyBit(Field field, uint32_t bits);
  // mark |= bits, and mark &= ~bits. Both use register 15.
  Rule& MarkBits(uint32_t bits);
  Rule& UnmarkBits(uint32_t bits);

  // Text for people, which nft(8) shows behind the fingerprint. What does not fit into a comment is cut off.
  // It plays no part in comparisons.
  Rule& SetNote(std::string note) {
    note_ = std::move(note);
    return *this;
  }
  const std::string& note() const { return note_; }

  const std::string& chain() const { return chain_; }
  const std::vector<Expr>& exprs() const { return exprs_; }
  // Identifies a rule across processes: wanted and found rules with equal fingerprints are the same. A
  // built rule's is a hash of its text, and begins the rule's comment in the kernel; a found rule's is that
  // part of the comment.
  std::string Fingerprint() const;
  std::string Comment() const;  // fingerprint and note
  void set_found_comment(const std::string& comment);

 private:
  Rule& Add(Expr expr) {
    exprs_.push_back(std::move(expr));
    return *this;
  }
  std::string chain_;
  std::vector<Expr> exprs_;
  std::string found_, note_;
};

}  // namespace keelson::nft
