#include "lib/nft/decode_expr_internal.h"

#include <libnftnl/common.h>
#include <linux/netfilter/nf_nat.h>
#include <linux/netfilter/nf_tables.h>

#include <algorithm>
#include <cstring>
#include <optional>

#include "lib/nft/encode_expr_internal.h"
#include "lib/nft/text.h"

namespace keelson::nft {
namespace {

uint32_t U32(const nftnl_expr* e, uint16_t attribute) { return nftnl_expr_get_u32(e, attribute); }
bool Has(const nftnl_expr* e, uint16_t attribute) { return nftnl_expr_is_set(e, attribute); }

std::string Bytes(const nftnl_expr* e, uint16_t attribute) {
  uint32_t size = 0;
  const void* data = nftnl_expr_get(e, attribute, &size);
  return data ? std::string(static_cast<const char*>(data), size) : std::string();
}

std::string Text(const nftnl_expr* e, uint16_t attribute) {
  const char* text = nftnl_expr_get_str(e, attribute);
  return text ? text : "";
}

// The kernel reports a register that is aligned to 16 bytes by its old number.
int Register(const nftnl_expr* e, uint16_t attribute) {
  auto number = static_cast<int>(U32(e, attribute));
  if (number >= NFT_REG_1 && number <= NFT_REG_4) return (number - NFT_REG_1) * 4;
  return number - NFT_REG32_00;
}

std::optional<Field> PayloadField(const nftnl_expr* e) {
  struct Row {
    uint32_t base, offset, length;
    Field field;
  };
  static constexpr Row kRows[] = {
      {NFT_PAYLOAD_NETWORK_HEADER, 12, 4, Field::kIpSaddr},
      {NFT_PAYLOAD_NETWORK_HEADER, 16, 4, Field::kIpDaddr},
      {NFT_PAYLOAD_NETWORK_HEADER, 8, 16, Field::kIp6Saddr},
      {NFT_PAYLOAD_NETWORK_HEADER, 24, 16, Field::kIp6Daddr},
      {NFT_PAYLOAD_TRANSPORT_HEADER, 0, 2, Field::kSourcePort},
      {NFT_PAYLOAD_TRANSPORT_HEADER, 2, 2, Field::kDestinationPort},
      {NFT_PAYLOAD_LL_HEADER, 6, 6, Field::kEtherSaddr},
      {NFT_PAYLOAD_LL_HEADER, 12, 2, Field::kEtherType},
      {NFT_PAYLOAD_TRANSPORT_HEADER, 0, 1, Field::kIcmpType},
  };
  for (const Row& row : kRows) {
    if (U32(e, NFTNL_EXPR_PAYLOAD_BASE) == row.base && U32(e, NFTNL_EXPR_PAYLOAD_OFFSET) == row.offset &&
        U32(e, NFTNL_EXPR_PAYLOAD_LEN) == row.length) {
      return row.field;
    }
  }
  return std::nullopt;
}

std::optional<Field> MetaField(uint32_t key) {
  switch (key) {
    case NFT_META_L4PROTO:
      return Field::kL4Proto;
    case NFT_META_NFPROTO:
      return Field::kNfProto;
    case NFT_META_MARK:
      return Field::kMark;
    case NFT_META_IIFNAME:
      return Field::kIifName;
    default:
      return std::nullopt;
  }
}

// Text for an expression that rule.h does not model.
std::string Brackets(const nftnl_expr* e, const std::string& name) {
  char text[512];
  int size = nftnl_expr_snprintf(text, sizeof text, e, NFTNL_OUTPUT_DEFAULT, 0);
  std::string out = name.empty() ? "unknown" : name;
  if (size > 0) out += " " + std::string(text, std::min(static_cast<size_t>(size), sizeof text - 1));
  out.erase(out.find_last_not_of(" \n") + 1);
  return "[" + out + "]";
}

using Decoded = std::optional<Expr>;

template <typename T>
Decoded LoadOf(const nftnl_expr* e, uint16_t reg, T field) {
  if (!field) return std::nullopt;
  return expr::Load{Register(e, reg), *field};
}

Decoded Payload(const nftnl_expr* e) {
  if (!Has(e, NFTNL_EXPR_PAYLOAD_DREG)) {  // writes into the packet
    bool daddr = U32(e, NFTNL_EXPR_PAYLOAD_BASE) == NFT_PAYLOAD_LL_HEADER &&
                 U32(e, NFTNL_EXPR_PAYLOAD_OFFSET) == 0 && U32(e, NFTNL_EXPR_PAYLOAD_LEN) == 6;
    if (!daddr) return std::nullopt;
    return expr::SetEtherDaddr{Register(e, NFTNL_EXPR_PAYLOAD_SREG)};
  }
  return LoadOf(e, NFTNL_EXPR_PAYLOAD_DREG, PayloadField(e));
}

Decoded Meta(const nftnl_expr* e) {
  uint32_t key = U32(e, NFTNL_EXPR_META_KEY);
  if (Has(e, NFTNL_EXPR_META_DREG)) return LoadOf(e, NFTNL_EXPR_META_DREG, MetaField(key));
  if (key == NFT_META_PKTTYPE) return expr::SetPacketType{Register(e, NFTNL_EXPR_META_SREG)};
  if (key != NFT_META_MARK) return std::nullopt;
  return expr::SetMark{Register(e, NFTNL_EXPR_META_SREG)};
}

Decoded Ct(const nftnl_expr* e) {
  if (!Has(e, NFTNL_EXPR_CT_DREG)) return std::nullopt;
  uint32_t key = U32(e, NFTNL_EXPR_CT_KEY);
  if (key == NFT_CT_DST_IP || key == NFT_CT_DST_IP6) {
    if (!Has(e, NFTNL_EXPR_CT_DIR) || nftnl_expr_get_u8(e, NFTNL_EXPR_CT_DIR) != 0) return std::nullopt;
    return expr::Load{Register(e, NFTNL_EXPR_CT_DREG),
                      key == NFT_CT_DST_IP ? Field::kCtOriginalDaddr : Field::kCtOriginal6Daddr};
  }
  if (key != NFT_CT_STATE && key != NFT_CT_STATUS) return std::nullopt;
  return expr::Load{Register(e, NFTNL_EXPR_CT_DREG),
                    key == NFT_CT_STATE ? Field::kCtState : Field::kCtStatus};
}

Decoded Fib(const nftnl_expr* e) {
  uint32_t flags = U32(e, NFTNL_EXPR_FIB_FLAGS);
  if (U32(e, NFTNL_EXPR_FIB_RESULT) != NFT_FIB_RESULT_ADDRTYPE) return std::nullopt;
  if (flags != NFTA_FIB_F_DADDR && flags != NFTA_FIB_F_SADDR) return std::nullopt;
  return expr::Load{Register(e, NFTNL_EXPR_FIB_DREG),
                    flags == NFTA_FIB_F_DADDR ? Field::kDaddrType : Field::kSaddrType};
}

Decoded Numgen(const nftnl_expr* e) {
  return expr::Random{Register(e, NFTNL_EXPR_NG_DREG), U32(e, NFTNL_EXPR_NG_MODULUS),
                      U32(e, NFTNL_EXPR_NG_OFFSET)};
}

Decoded Compare(const nftnl_expr* e) {
  uint32_t op = U32(e, NFTNL_EXPR_CMP_OP);
  if (op != NFT_CMP_EQ && op != NFT_CMP_NEQ) return std::nullopt;
  return expr::Compare{Register(e, NFTNL_EXPR_CMP_SREG), op == NFT_CMP_EQ, Bytes(e, NFTNL_EXPR_CMP_DATA)};
}

Decoded Bitwise(const nftnl_expr* e) {
  int reg = Register(e, NFTNL_EXPR_BITWISE_SREG);
  bool mask = U32(e, NFTNL_EXPR_BITWISE_OP) == NFT_BITWISE_BOOL;
  if (!mask || reg != Register(e, NFTNL_EXPR_BITWISE_DREG)) return std::nullopt;
  return expr::Mask{reg, Bytes(e, NFTNL_EXPR_BITWISE_MASK), Bytes(e, NFTNL_EXPR_BITWISE_XOR)};
}

Decoded Immediate(const nftnl_expr* e) {
  if (U32(e, NFTNL_EXPR_IMM_DREG) != NFT_REG_VERDICT) {
    return expr::Immediate{Register(e, NFTNL_EXPR_IMM_DREG), Bytes(e, NFTNL_EXPR_IMM_DATA)};
  }
  auto code = static_cast<int>(U32(e, NFTNL_EXPR_IMM_VERDICT));
  return expr::Finish{{VerdictKind(code), Text(e, NFTNL_EXPR_IMM_CHAIN)}};
}

Decoded Lookup(const nftnl_expr* e) {
  int key = Register(e, NFTNL_EXPR_LOOKUP_SREG);
  std::string set = Text(e, NFTNL_EXPR_LOOKUP_SET);
  if (!Has(e, NFTNL_EXPR_LOOKUP_DREG)) {
    bool negate = Has(e, NFTNL_EXPR_LOOKUP_FLAGS) && (U32(e, NFTNL_EXPR_LOOKUP_FLAGS) & NFT_LOOKUP_F_INV);
    return expr::Lookup{key, std::move(set), negate};
  }
  if (U32(e, NFTNL_EXPR_LOOKUP_DREG) == NFT_REG_VERDICT) return expr::VerdictMap{key, std::move(set)};
  return expr::Map{key, std::move(set), Register(e, NFTNL_EXPR_LOOKUP_DREG)};
}

Decoded Dynset(const nftnl_expr* e) {
  if (U32(e, NFTNL_EXPR_DYNSET_OP) == NFT_DYNSET_OP_DELETE) {
    return expr::Forget{Register(e, NFTNL_EXPR_DYNSET_SREG_KEY), Text(e, NFTNL_EXPR_DYNSET_SET_NAME)};
  }
  std::chrono::milliseconds timeout(
      Has(e, NFTNL_EXPR_DYNSET_TIMEOUT) ? nftnl_expr_get_u64(e, NFTNL_EXPR_DYNSET_TIMEOUT) : 0);
  return expr::Update{Register(e, NFTNL_EXPR_DYNSET_SREG_KEY), Text(e, NFTNL_EXPR_DYNSET_SET_NAME), timeout};
}

Decoded Nat(const nftnl_expr* e) {
  bool registers = Has(e, NFTNL_EXPR_NAT_REG_ADDR_MIN) && Has(e, NFTNL_EXPR_NAT_REG_PROTO_MIN);
  if (U32(e, NFTNL_EXPR_NAT_TYPE) != NFT_NAT_DNAT || !registers) return std::nullopt;
  return expr::Dnat{static_cast<Family>(U32(e, NFTNL_EXPR_NAT_FAMILY)),
                    Register(e, NFTNL_EXPR_NAT_REG_ADDR_MIN), Register(e, NFTNL_EXPR_NAT_REG_PROTO_MIN)};
}

Decoded Masq(const nftnl_expr* e) {
  if (!Has(e, NFTNL_EXPR_MASQ_REG_PROTO_MIN)) return expr::Masquerade{};
  return expr::Masquerade{Register(e, NFTNL_EXPR_MASQ_REG_PROTO_MIN),
                          Register(e, NFTNL_EXPR_MASQ_REG_PROTO_MAX)};
}
Decoded Counter(const nftnl_expr*) { return expr::Counter{}; }
Decoded Log(const nftnl_expr* e) {
  if (!Has(e, NFTNL_EXPR_LOG_GROUP)) return expr::Counter{};  // to the kernel's log: no matter here
  return expr::Log{nftnl_expr_get_u16(e, NFTNL_EXPR_LOG_GROUP), Text(e, NFTNL_EXPR_LOG_PREFIX)};
}
// Matches of iptables-nft: a comment always matches.
Decoded Match(const nftnl_expr* e) {
  if (Text(e, NFTNL_EXPR_MT_NAME) != "comment") return std::nullopt;
  return expr::Counter{};
}
Decoded Reject(const nftnl_expr* e) {
  return expr::Reject{U32(e, NFTNL_EXPR_REJECT_TYPE) == NFT_REJECT_TCP_RST};
}

}  // namespace

void DecodeExpr(const nftnl_expr* e, Program& program) {
  struct Row {
    const char* name;
    Decoded (*decode)(const nftnl_expr*);
  };
  static constexpr Row kRows[] = {
      {"payload", Payload}, {"meta", Meta},       {"ct", Ct},           {"fib", Fib},
      {"numgen", Numgen},   {"cmp", Compare},     {"bitwise", Bitwise}, {"lookup", Lookup},
      {"dynset", Dynset},   {"nat", Nat},         {"masq", Masq},       {"immediate", Immediate},
      {"reject", Reject},   {"counter", Counter}, {"log", Log},         {"match", Match},
  };
  std::string name = Text(e, NFTNL_EXPR_NAME);
  if (name == "counter") program.packets = nftnl_expr_get_u64(e, NFTNL_EXPR_CTR_PACKETS);
  Decoded decoded;
  for (const Row& row : kRows) {
    if (name == row.name) decoded = row.decode(e);
  }
  if (auto* finish = decoded ? std::get_if<expr::Finish>(&*decoded) : nullptr) {
    if (!finish->verdict.chain.empty()) program.leads_to.push_back(finish->verdict.chain);
  }
  if (decoded && program.not_understood.empty()) return program.exprs.push_back(std::move(*decoded));
  if (program.not_understood.empty()) program.not_understood = ToText(program.exprs);
  if (!program.not_understood.empty()) program.not_understood += "; ";
  program.not_understood += decoded ? ToText(std::vector<Expr>{*decoded}) : Brackets(e, name);
}

}  // namespace keelson::nft
