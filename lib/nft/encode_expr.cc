#include "lib/nft/encode_expr_internal.h"

#include <libnftnl/expr.h>
#include <linux/icmp.h>
#include <linux/icmpv6.h>
#include <linux/netfilter.h>
#include <linux/netfilter/nf_nat.h>
#include <linux/netfilter/nf_tables.h>

#include "lib/nft/model.h"

namespace keelson::nft {
namespace {

uint32_t Register(int reg) { return static_cast<uint32_t>(NFT_REG32_00 + reg); }

void PutBytes(nftnl_expr* e, uint16_t attribute, const std::string& bytes) {
  nftnl_expr_set(e, attribute, bytes.data(), static_cast<uint32_t>(bytes.size()));
}

nftnl_expr* Payload(int reg, uint32_t base, uint32_t offset, uint32_t length) {
  nftnl_expr* e = nftnl_expr_alloc("payload");
  nftnl_expr_set_u32(e, NFTNL_EXPR_PAYLOAD_BASE, base);
  nftnl_expr_set_u32(e, NFTNL_EXPR_PAYLOAD_OFFSET, offset);
  nftnl_expr_set_u32(e, NFTNL_EXPR_PAYLOAD_LEN, length);
  nftnl_expr_set_u32(e, NFTNL_EXPR_PAYLOAD_DREG, Register(reg));
  return e;
}

nftnl_expr* Meta(int reg, uint32_t key) {
  nftnl_expr* e = nftnl_expr_alloc("meta");
  nftnl_expr_set_u32(e, NFTNL_EXPR_META_KEY, key);
  nftnl_expr_set_u32(e, NFTNL_EXPR_META_DREG, Register(reg));
  return e;
}

nftnl_expr* Ct(int reg, uint32_t key) {
  nftnl_expr* e = nftnl_expr_alloc("ct");
  nftnl_expr_set_u32(e, NFTNL_EXPR_CT_KEY, key);
  nftnl_expr_set_u32(e, NFTNL_EXPR_CT_DREG, Register(reg));
  return e;
}

nftnl_expr* CtOriginal(int reg, uint32_t key) {
  nftnl_expr* e = Ct(reg, key);
  nftnl_expr_set_u8(e, NFTNL_EXPR_CT_DIR, 0);  // IP_CT_DIR_ORIGINAL
  return e;
}

nftnl_expr* AddressType(int reg, uint32_t flags) {
  nftnl_expr* e = nftnl_expr_alloc("fib");
  nftnl_expr_set_u32(e, NFTNL_EXPR_FIB_FLAGS, flags);
  nftnl_expr_set_u32(e, NFTNL_EXPR_FIB_RESULT, NFT_FIB_RESULT_ADDRTYPE);
  nftnl_expr_set_u32(e, NFTNL_EXPR_FIB_DREG, Register(reg));
  return e;
}

struct Encode {
  Family family;

  nftnl_expr* operator()(const expr::Load& x) const {
    switch (x.field) {
      case Field::kIpSaddr:
        return Payload(x.reg, NFT_PAYLOAD_NETWORK_HEADER, 12, 4);
      case Field::kIpDaddr:
        return Payload(x.reg, NFT_PAYLOAD_NETWORK_HEADER, 16, 4);
      case Field::kIp6Saddr:
        return Payload(x.reg, NFT_PAYLOAD_NETWORK_HEADER, 8, 16);
      case Field::kIp6Daddr:
        return Payload(x.reg, NFT_PAYLOAD_NETWORK_HEADER, 24, 16);
      case Field::kSourcePort:
        return Payload(x.reg, NFT_PAYLOAD_TRANSPORT_HEADER, 0, 2);
      case Field::kDestinationPort:
        return Payload(x.reg, NFT_PAYLOAD_TRANSPORT_HEADER, 2, 2);
      case Field::kL4Proto:
        return Meta(x.reg, NFT_META_L4PROTO);
      case Field::kNfProto:
        return Meta(x.reg, NFT_META_NFPROTO);
      case Field::kMark:
        return Meta(x.reg, NFT_META_MARK);
      case Field::kCtState:
        return Ct(x.reg, NFT_CT_STATE);
      case Field::kCtStatus:
        return Ct(x.reg, NFT_CT_STATUS);
      case Field::kCtOriginalDaddr:
        return CtOriginal(x.reg, NFT_CT_DST_IP);
      case Field::kCtOriginal6Daddr:
        return CtOriginal(x.reg, NFT_CT_DST_IP6);
      case Field::kDaddrType:
        return AddressType(x.reg, NFTA_FIB_F_DADDR);
      case Field::kSaddrType:
        return AddressType(x.reg, NFTA_FIB_F_SADDR);
      case Field::kIifName:
        return Meta(x.reg, NFT_META_IIFNAME);
      case Field::kEtherSaddr:
        return Payload(x.reg, NFT_PAYLOAD_LL_HEADER, 6, 6);
      case Field::kEtherType:
        return Payload(x.reg, NFT_PAYLOAD_LL_HEADER, 12, 2);
      case Field::kIcmpType:
        return Payload(x.reg, NFT_PAYLOAD_TRANSPORT_HEADER, 0, 1);
    }
    return nullptr;
  }
  nftnl_expr* operator()(const expr::Random& x) const {
    nftnl_expr* e = nftnl_expr_alloc("numgen");
    nftnl_expr_set_u32(e, NFTNL_EXPR_NG_DREG, Register(x.reg));
    nftnl_expr_set_u32(e, NFTNL_EXPR_NG_TYPE, NFT_NG_RANDOM);
    nftnl_expr_set_u32(e, NFTNL_EXPR_NG_MODULUS, x.modulus);
    nftnl_expr_set_u32(e, NFTNL_EXPR_NG_OFFSET, x.offset);
    return e;
  }
  nftnl_expr* operator()(const expr::Compare& x) const {
    nftnl_expr* e = nftnl_expr_alloc("cmp");
    nftnl_expr_set_u32(e, NFTNL_EXPR_CMP_SREG, Register(x.reg));
    nftnl_expr_set_u32(e, NFTNL_EXPR_CMP_OP, x.equal ? NFT_CMP_EQ : NFT_CMP_NEQ);
    PutBytes(e, NFTNL_EXPR_CMP_DATA, x.value);
    return e;
  }
  nftnl_expr* operator()(const expr::Mask& x) const {
    nftnl_expr* e = nftnl_expr_alloc("bitwise");
    nftnl_expr_set_u32(e, NFTNL_EXPR_BITWISE_SREG, Register(x.reg));
    nftnl_expr_set_u32(e, NFTNL_EXPR_BITWISE_DREG, Register(x.reg));
    nftnl_expr_set_u32(e, NFTNL_EXPR_BITWISE_LEN, static_cast<uint32_t>(x.mask.size()));
    PutBytes(e, NFTNL_EXPR_BITWISE_MASK, x.mask);
    PutBytes(e, NFTNL_EXPR_BITWISE_XOR, x.xor_with);
    return e;
  }
  nftnl_expr* operator()(const expr::Immediate& x) const {
    nftnl_expr* e = nftnl_expr_alloc("immediate");
    nftnl_expr_set_u32(e, NFTNL_EXPR_IMM_DREG, Register(x.reg));
    PutBytes(e, NFTNL_EXPR_IMM_DATA, x.value);
    return e;
  }
  static nftnl_expr* Lookup(int key, const std::string& set) {
    nftnl_expr* e = nftnl_expr_alloc("lookup");
    nftnl_expr_set_u32(e, NFTNL_EXPR_LOOKUP_SREG, Register(key));
    nftnl_expr_set_str(e, NFTNL_EXPR_LOOKUP_SET, set.c_str());
    return e;
  }
  nftnl_expr* operator()(const expr::Lookup& x) const {
    nftnl_expr* e = Lookup(x.key, x.set);
    if (x.negate) nftnl_expr_set_u32(e, NFTNL_EXPR_LOOKUP_FLAGS, NFT_LOOKUP_F_INV);
    return e;
  }
  nftnl_expr* operator()(const expr::Map& x) const {
    nftnl_expr* e = Lookup(x.key, x.set);
    nftnl_expr_set_u32(e, NFTNL_EXPR_LOOKUP_DREG, Register(x.out));
    return e;
  }
  nftnl_expr* operator()(const expr::VerdictMap& x) const {
    nftnl_expr* e = Lookup(x.key, x.set);
    nftnl_expr_set_u32(e, NFTNL_EXPR_LOOKUP_DREG, NFT_REG_VERDICT);
    return e;
  }
  nftnl_expr* operator()(const expr::SetMark& x) const {
    nftnl_expr* e = nftnl_expr_alloc("meta");
    nftnl_expr_set_u32(e, NFTNL_EXPR_META_KEY, NFT_META_MARK);
    nftnl_expr_set_u32(e, NFTNL_EXPR_META_SREG, Register(x.reg));
    return e;
  }
  nftnl_expr* operator()(const expr::SetEtherDaddr& x) const {
    nftnl_expr* e = nftnl_expr_alloc("payload");
    nftnl_expr_set_u32(e, NFTNL_EXPR_PAYLOAD_SREG, Register(x.reg));
    nftnl_expr_set_u32(e, NFTNL_EXPR_PAYLOAD_BASE, NFT_PAYLOAD_LL_HEADER);
    nftnl_expr_set_u32(e, NFTNL_EXPR_PAYLOAD_OFFSET, 0);
    nftnl_expr_set_u32(e, NFTNL_EXPR_PAYLOAD_LEN, 6);
    nftnl_expr_set_u32(e, NFTNL_EXPR_PAYLOAD_CSUM_TYPE, NFT_PAYLOAD_CSUM_NONE);
    nftnl_expr_set_u32(e, NFTNL_EXPR_PAYLOAD_CSUM_OFFSET, 0);
    return e;
  }
  nftnl_expr* operator()(const expr::SetPacketType& x) const {
    nftnl_expr* e = nftnl_expr_alloc("meta");
    nftnl_expr_set_u32(e, NFTNL_EXPR_META_KEY, NFT_META_PKTTYPE);
    nftnl_expr_set_u32(e, NFTNL_EXPR_META_SREG, Register(x.reg));
    return e;
  }
  nftnl_expr* operator()(const expr::Update& x) const {
    nftnl_expr* e = nftnl_expr_alloc("dynset");
    nftnl_expr_set_u32(e, NFTNL_EXPR_DYNSET_OP, NFT_DYNSET_OP_UPDATE);
    nftnl_expr_set_u32(e, NFTNL_EXPR_DYNSET_SREG_KEY, Register(x.key));
    nftnl_expr_set_u64(e, NFTNL_EXPR_DYNSET_TIMEOUT, static_cast<uint64_t>(x.timeout.count()));
    nftnl_expr_set_str(e, NFTNL_EXPR_DYNSET_SET_NAME, x.set.c_str());
    return e;
  }
  nftnl_expr* operator()(const expr::Forget& x) const {
    nftnl_expr* e = nftnl_expr_alloc("dynset");
    nftnl_expr_set_u32(e, NFTNL_EXPR_DYNSET_OP, NFT_DYNSET_OP_DELETE);
    nftnl_expr_set_u32(e, NFTNL_EXPR_DYNSET_SREG_KEY, Register(x.key));
    nftnl_expr_set_str(e, NFTNL_EXPR_DYNSET_SET_NAME, x.set.c_str());
    return e;
  }
  nftnl_expr* operator()(const expr::Dnat& x) const {
    nftnl_expr* e = nftnl_expr_alloc("nat");
    nftnl_expr_set_u32(e, NFTNL_EXPR_NAT_TYPE, NFT_NAT_DNAT);
    nftnl_expr_set_u32(e, NFTNL_EXPR_NAT_FAMILY, static_cast<uint32_t>(x.family));
    nftnl_expr_set_u32(e, NFTNL_EXPR_NAT_REG_ADDR_MIN, Register(x.address));
    nftnl_expr_set_u32(e, NFTNL_EXPR_NAT_REG_PROTO_MIN, Register(x.port));
    return e;
  }
  nftnl_expr* operator()(const expr::Masquerade& x) const {
    nftnl_expr* e = nftnl_expr_alloc("masq");
    nftnl_expr_set_u32(e, NFTNL_EXPR_MASQ_FLAGS, NF_NAT_RANGE_PROTO_RANDOM_FULLY);
    if (x.first < 0) return e;
    // Without this flag the kernel ignores the ports.
    nftnl_expr_set_u32(e, NFTNL_EXPR_MASQ_FLAGS,
                       NF_NAT_RANGE_PROTO_RANDOM_FULLY | NF_NAT_RANGE_PROTO_SPECIFIED);
    nftnl_expr_set_u32(e, NFTNL_EXPR_MASQ_REG_PROTO_MIN, Register(x.first));
    nftnl_expr_set_u32(e, NFTNL_EXPR_MASQ_REG_PROTO_MAX, Register(x.last));
    return e;
  }
  nftnl_expr* operator()(const expr::Reject& x) const {
    nftnl_expr* e = nftnl_expr_alloc("reject");
    uint32_t type = x.tcp_reset               ? NFT_REJECT_TCP_RST
                    : family == Family::kInet ? NFT_REJECT_ICMPX_UNREACH
                                              : NFT_REJECT_ICMP_UNREACH;
    uint8_t code = family == Family::kInet   ? static_cast<uint8_t>(NFT_REJECT_ICMPX_PORT_UNREACH)
                   : family == Family::kIpv4 ? static_cast<uint8_t>(ICMP_PORT_UNREACH)
                                             : static_cast<uint8_t>(ICMPV6_PORT_UNREACH);
    nftnl_expr_set_u32(e, NFTNL_EXPR_REJECT_TYPE, type);
    nftnl_expr_set_u8(e, NFTNL_EXPR_REJECT_CODE, x.tcp_reset ? uint8_t{0} : code);
    return e;
  }
  nftnl_expr* operator()(const expr::Finish& x) const {
    nftnl_expr* e = nftnl_expr_alloc("immediate");
    nftnl_expr_set_u32(e, NFTNL_EXPR_IMM_DREG, NFT_REG_VERDICT);
    nftnl_expr_set_u32(e, NFTNL_EXPR_IMM_VERDICT, static_cast<uint32_t>(VerdictCode(x.verdict.kind)));
    if (!x.verdict.chain.empty()) nftnl_expr_set_str(e, NFTNL_EXPR_IMM_CHAIN, x.verdict.chain.c_str());
    return e;
  }
  nftnl_expr* operator()(const expr::Counter&) const { return nftnl_expr_alloc("counter"); }
  nftnl_expr* operator()(const expr::Limit& x) const {
    nftnl_expr* e = nftnl_expr_alloc("limit");
    nftnl_expr_set_u64(e, NFTNL_EXPR_LIMIT_RATE, x.per_second);
    nftnl_expr_set_u64(e, NFTNL_EXPR_LIMIT_UNIT, 1);  // seconds
    nftnl_expr_set_u32(e, NFTNL_EXPR_LIMIT_BURST, x.burst);
    nftnl_expr_set_u32(e, NFTNL_EXPR_LIMIT_TYPE, NFT_LIMIT_PKTS);
    nftnl_expr_set_u32(e, NFTNL_EXPR_LIMIT_FLAGS, 0);
    return e;
  }
  nftnl_expr* operator()(const expr::Log& x) const {
    constexpr uint32_t kHeaders = 128;  // bytes of the packet: IP and transport headers
    nftnl_expr* e = nftnl_expr_alloc("log");
    nftnl_expr_set_u16(e, NFTNL_EXPR_LOG_GROUP, x.group);
    nftnl_expr_set_u32(e, NFTNL_EXPR_LOG_SNAPLEN, kHeaders);
    if (!x.prefix.empty()) nftnl_expr_set_str(e, NFTNL_EXPR_LOG_PREFIX, x.prefix.c_str());
    return e;
  }
};

}  // namespace

nftnl_expr* EncodeExpr(const Expr& expr, Family table_family) {
  return std::visit(Encode{table_family}, expr);
}

int VerdictCode(Verdict::Kind kind) {
  switch (kind) {
    case Verdict::Kind::kAccept:
      return NF_ACCEPT;
    case Verdict::Kind::kDrop:
      return NF_DROP;
    case Verdict::Kind::kReturn:
      return NFT_RETURN;
    case Verdict::Kind::kJump:
      return NFT_JUMP;
    case Verdict::Kind::kGoto:
      return NFT_GOTO;
  }
  return NF_DROP;
}

Verdict::Kind VerdictKind(int code) {
  switch (code) {
    case NF_ACCEPT:
      return Verdict::Kind::kAccept;
    case NFT_RETURN:
      return Verdict::Kind::kReturn;
    case NFT_JUMP:
      return Verdict::Kind::kJump;
    case NFT_GOTO:
      return Verdict::Kind::kGoto;
    default:
      return Verdict::Kind::kDrop;
  }
}

}  // namespace keelson::nft
