#include "lib/nft/encode_internal.h"

#include <libmnl/libmnl.h>
#include <libnftnl/chain.h>
#include <libnftnl/common.h>
#include <libnftnl/rule.h>
#include <libnftnl/set.h>
#include <libnftnl/table.h>
#include <libnftnl/udata.h>
#include <linux/netfilter.h>
#include <linux/netfilter/nf_tables.h>

#include <algorithm>
#include <memory>

#include "lib/nft/encode_expr_internal.h"

namespace keelson::nft {
namespace {

template <auto Free>
struct Deleter {
  template <typename T>
  void operator()(T* object) const {
    Free(object);
  }
};
using ChainPtr = std::unique_ptr<nftnl_chain, Deleter<nftnl_chain_free>>;
using RulePtr = std::unique_ptr<nftnl_rule, Deleter<nftnl_rule_free>>;
using SetPtr = std::unique_ptr<nftnl_set, Deleter<nftnl_set_free>>;
using TablePtr = std::unique_ptr<nftnl_table, Deleter<nftnl_table_free>>;

// Elements of one message share one attribute, whose length has 16 bits; an element of ours stays below 500
// bytes.
constexpr size_t kElementsPerMessage = 128;
constexpr size_t kScratchBytes = 256 << 10;

constexpr unsigned kTypeBits = 6;  // per part of a concatenation, in nft(8)'s numbering
struct TypeRow {
  Type type;
  uint32_t number;
};
constexpr TypeRow kTypes[] = {{Type::kIpv4Addr, 7},   {Type::kIpv6Addr, 8},     {Type::kEtherAddr, 9},
                              {Type::kInetProto, 12}, {Type::kInetService, 13}, {Type::kMark, 19},
                              {Type::kIfname, 41}};

class Encoder {
 public:
  Encoder(const Table& table, uint32_t first_seq)
      : table_(table), scratch_(std::make_unique<char[]>(kScratchBytes)) {
    batch_.first_seq = first_seq;
  }

  Batch Run(const std::vector<Op>& ops) {
    Append(nftnl_batch_begin(scratch_.get(), batch_.first_seq));
    for (op_ = 0; op_ < ops.size(); ++op_) std::visit(*this, ops[op_]);
    if (!batch_.messages.empty()) {
      auto* last = reinterpret_cast<nlmsghdr*>(batch_.bytes.data() + batch_.messages.back().offset);
      last->nlmsg_flags |= NLM_F_ACK;
    }
    Append(nftnl_batch_end(scratch_.get(), NextSeq()));
    return std::move(batch_);
  }

  void operator()(const op::AddTable&) { TableMessage(NFT_MSG_NEWTABLE, NLM_F_CREATE); }
  void operator()(const op::DeleteTable&) { TableMessage(NFT_MSG_DELTABLE, 0); }

  void operator()(const op::AddChain& o) {
    ChainPtr chain(nftnl_chain_alloc());
    nftnl_chain_set_str(chain.get(), NFTNL_CHAIN_TABLE, table_.name.c_str());
    nftnl_chain_set_str(chain.get(), NFTNL_CHAIN_NAME, o.chain.name.c_str());
    if (o.chain.hook) {
      nftnl_chain_set_str(chain.get(), NFTNL_CHAIN_TYPE,
                          o.chain.hook->type == HookType::kNat ? "nat" : "filter");
      nftnl_chain_set_u32(chain.get(), NFTNL_CHAIN_HOOKNUM, static_cast<uint32_t>(o.chain.hook->point));
      nftnl_chain_set_s32(chain.get(), NFTNL_CHAIN_PRIO, o.chain.hook->priority);
    }
    nlmsghdr* header = Start(NFT_MSG_NEWCHAIN, NLM_F_CREATE | (o.exclusive ? NLM_F_EXCL : 0));
    nftnl_chain_nlmsg_build_payload(header, chain.get());
    Finish(header);
  }

  void operator()(const op::DeleteChain& o) {
    ChainPtr chain(nftnl_chain_alloc());
    nftnl_chain_set_str(chain.get(), NFTNL_CHAIN_TABLE, table_.name.c_str());
    nftnl_chain_set_str(chain.get(), NFTNL_CHAIN_NAME, o.name.c_str());
    nlmsghdr* header = Start(NFT_MSG_DELCHAIN, 0);
    nftnl_chain_nlmsg_build_payload(header, chain.get());
    Finish(header);
  }

  void operator()(const op::FlushChain& o) {
    RulePtr rule = NewRule(o.name);
    nlmsghdr* header = Start(NFT_MSG_DELRULE, 0);
    nftnl_rule_nlmsg_build_payload(header, rule.get());
    Finish(header);
  }

  void operator()(const op::AddRule& o) {
    RulePtr rule = NewRule(o.rule.chain());
    for (const Expr& expr : o.rule.exprs()) nftnl_rule_add_expr(rule.get(), EncodeExpr(expr, table_.family));
    std::unique_ptr<nftnl_udata_buf, Deleter<nftnl_udata_buf_free>> comment(nftnl_udata_buf_alloc(256));
    nftnl_udata_put_strz(comment.get(), NFTNL_UDATA_RULE_COMMENT, o.rule.Comment().c_str());
    nftnl_rule_set_data(rule.get(), NFTNL_RULE_USERDATA, nftnl_udata_buf_data(comment.get()),
                        nftnl_udata_buf_len(comment.get()));
    nlmsghdr* header = Start(NFT_MSG_NEWRULE, NLM_F_CREATE | NLM_F_APPEND);
    nftnl_rule_nlmsg_build_payload(header, rule.get());
    Finish(header);
  }

  void operator()(const op::DeleteRule& o) {
    RulePtr rule = NewRule(o.chain);
    nftnl_rule_set_u64(rule.get(), NFTNL_RULE_HANDLE, o.handle);
    nlmsghdr* header = Start(NFT_MSG_DELRULE, 0);
    nftnl_rule_nlmsg_build_payload(header, rule.get());
    Finish(header);
  }

  void operator()(const op::AddSet& o) {
    SetPtr set = NewSet(o.set.name);
    uint32_t flags = (o.set.IsMap() ? NFT_SET_MAP : 0) | (o.set.interval ? NFT_SET_INTERVAL : 0) |
                     (o.set.dynamic ? NFT_SET_EVAL : 0) | (o.set.timeout.count() > 0 ? NFT_SET_TIMEOUT : 0) |
                     (o.set.key.size() > 1 ? NFT_SET_CONCAT : 0);
    nftnl_set_set_u32(set.get(), NFTNL_SET_ID, static_cast<uint32_t>(op_ + 1));
    nftnl_set_set_u32(set.get(), NFTNL_SET_FLAGS, flags);
    nftnl_set_set_u32(set.get(), NFTNL_SET_KEY_TYPE, KernelType(o.set.key));
    nftnl_set_set_u32(set.get(), NFTNL_SET_KEY_LEN, static_cast<uint32_t>(WidthOf(o.set.key)));
    if (o.set.verdicts) {
      nftnl_set_set_u32(set.get(), NFTNL_SET_DATA_TYPE, NFT_DATA_VERDICT);
      nftnl_set_set_u32(set.get(), NFTNL_SET_DATA_LEN, 16);
    } else if (!o.set.data.empty()) {
      nftnl_set_set_u32(set.get(), NFTNL_SET_DATA_TYPE, KernelType(o.set.data));
      nftnl_set_set_u32(set.get(), NFTNL_SET_DATA_LEN, static_cast<uint32_t>(WidthOf(o.set.data)));
    }
    if (o.set.timeout.count() > 0) {
      nftnl_set_set_u64(set.get(), NFTNL_SET_TIMEOUT, static_cast<uint64_t>(o.set.timeout.count()));
    }
    if (o.set.key.size() > 1) {
      std::string lengths;
      for (Type type : o.set.key) lengths += static_cast<char>(SizeOf(type));
      nftnl_set_set_data(set.get(), NFTNL_SET_DESC_CONCAT, lengths.data(),
                         static_cast<uint32_t>(lengths.size()));
    }
    std::unique_ptr<nftnl_udata_buf, Deleter<nftnl_udata_buf_free>> hints(nftnl_udata_buf_alloc(64));
    if (o.set.key == std::vector<Type>{Type::kIfname}) {
      // nft(8) prints names backwards and truncated unless it knows that they are not big-endian numbers.
      constexpr uint32_t kHostByteOrder = 1;
      nftnl_udata_put_u32(hints.get(), NFTNL_UDATA_SET_KEYBYTEORDER, kHostByteOrder);
      nftnl_set_set_data(set.get(), NFTNL_SET_USERDATA, nftnl_udata_buf_data(hints.get()),
                         nftnl_udata_buf_len(hints.get()));
    }
    nlmsghdr* header = Start(NFT_MSG_NEWSET, NLM_F_CREATE);
    nftnl_set_nlmsg_build_payload(header, set.get());
    Finish(header);
  }

  void operator()(const op::DeleteSet& o) {
    SetPtr set = NewSet(o.name);
    nlmsghdr* header = Start(NFT_MSG_DELSET, 0);
    nftnl_set_nlmsg_build_payload(header, set.get());
    Finish(header);
  }

  void operator()(const op::AddElements& o) {
    Elements(NFT_MSG_NEWSETELEM, NLM_F_CREATE | (o.exclusive ? NLM_F_EXCL : 0), o.set, o.elements);
  }
  void operator()(const op::DeleteElements& o) { Elements(NFT_MSG_DELSETELEM, 0, o.set, o.elements); }

 private:
  uint32_t NextSeq() const { return batch_.first_seq + 1 + static_cast<uint32_t>(batch_.messages.size()); }

  nlmsghdr* Start(int type, int flags) {
    return nftnl_nlmsg_build_hdr(scratch_.get(), static_cast<uint16_t>(type),
                                 static_cast<uint16_t>(table_.family), static_cast<uint16_t>(flags),
                                 NextSeq());
  }
  void Append(const nlmsghdr* header) {
    batch_.bytes.append(reinterpret_cast<const char*>(header), MNL_ALIGN(header->nlmsg_len));
  }
  void Finish(const nlmsghdr* header, size_t first_element = 0) {
    batch_.messages.push_back({batch_.bytes.size(), op_, first_element});
    Append(header);
  }

  void TableMessage(int type, int flags) {
    TablePtr table(nftnl_table_alloc());
    nftnl_table_set_str(table.get(), NFTNL_TABLE_NAME, table_.name.c_str());
    nlmsghdr* header = Start(type, flags);
    nftnl_table_nlmsg_build_payload(header, table.get());
    Finish(header);
  }

  RulePtr NewRule(const std::string& chain) const {
    RulePtr rule(nftnl_rule_alloc());
    nftnl_rule_set_str(rule.get(), NFTNL_RULE_TABLE, table_.name.c_str());
    nftnl_rule_set_str(rule.get(), NFTNL_RULE_CHAIN, chain.c_str());
    return rule;
  }

  SetPtr NewSet(const std::string& name) const {
    SetPtr set(nftnl_set_alloc());
    nftnl_set_set_str(set.get(), NFTNL_SET_TABLE, table_.name.c_str());
    nftnl_set_set_str(set.get(), NFTNL_SET_NAME, name.c_str());
    nftnl_set_set_u32(set.get(), NFTNL_SET_FAMILY, static_cast<uint32_t>(table_.family));
    return set;
  }

  static nftnl_set_elem* NewElement(const Element& element, bool with_data) {
    nftnl_set_elem* out = nftnl_set_elem_alloc();
    auto put = [&](uint16_t attribute, const std::string& bytes) {
      if (!bytes.empty()) {
        nftnl_set_elem_set(out, attribute, bytes.data(), static_cast<uint32_t>(bytes.size()));
      }
    };
    put(NFTNL_SET_ELEM_KEY, element.key);
    put(NFTNL_SET_ELEM_KEY_END, element.key_end);
    if (!with_data) return out;
    if (!element.comment.empty()) {
      std::unique_ptr<nftnl_udata_buf, Deleter<nftnl_udata_buf_free>> comment(nftnl_udata_buf_alloc(256));
      nftnl_udata_put_strz(comment.get(), NFTNL_UDATA_SET_ELEM_COMMENT, element.comment.c_str());
      nftnl_set_elem_set(out, NFTNL_SET_ELEM_USERDATA, nftnl_udata_buf_data(comment.get()),
                         nftnl_udata_buf_len(comment.get()));
    }
    put(NFTNL_SET_ELEM_DATA, element.data);
    if (element.lifetime.count() > 0) {
      nftnl_set_elem_set_u64(out, NFTNL_SET_ELEM_TIMEOUT, static_cast<uint64_t>(element.lifetime.count()));
    }
    if (element.verdict) {
      nftnl_set_elem_set_u32(out, NFTNL_SET_ELEM_VERDICT,
                             static_cast<uint32_t>(VerdictCode(element.verdict->kind)));
      if (!element.verdict->chain.empty()) {
        nftnl_set_elem_set_str(out, NFTNL_SET_ELEM_CHAIN, element.verdict->chain.c_str());
      }
    }
    return out;
  }

  void Elements(int type, int flags, const Set& set, const std::vector<Element>& elements) {
    for (size_t begin = 0; begin < elements.size(); begin += kElementsPerMessage) {
      SetPtr part = NewSet(set.name);
      size_t end = std::min(begin + kElementsPerMessage, elements.size());
      for (size_t i = begin; i < end; ++i) {
        nftnl_set_elem_add(part.get(), NewElement(elements[i], type == NFT_MSG_NEWSETELEM));
      }
      nlmsghdr* header = Start(type, flags);
      nftnl_set_elems_nlmsg_build_payload(header, part.get());
      Finish(header, begin);
    }
  }

  const Table& table_;
  std::unique_ptr<char[]> scratch_;
  Batch batch_;
  size_t op_ = 0;
};

}  // namespace

Batch Encode(const Transaction& transaction, uint32_t first_seq) {
  return Encoder(transaction.table(), first_seq).Run(transaction.ops());
}

uint32_t KernelType(const std::vector<Type>& types) {
  uint32_t out = 0;
  for (Type type : types) {
    for (const TypeRow& row : kTypes) {
      if (row.type == type) out = (out << kTypeBits) | row.number;
    }
  }
  return out;
}

std::vector<Type> TypesOf(uint32_t kernel_type) {
  std::vector<Type> out;
  for (; kernel_type != 0; kernel_type >>= kTypeBits) {
    uint32_t number = kernel_type & ((1u << kTypeBits) - 1);
    auto row = std::find_if(std::begin(kTypes), std::end(kTypes),
                            [&](const TypeRow& r) { return r.number == number; });
    if (row == std::end(kTypes)) return {};
    out.insert(out.begin(), row->type);
  }
  return out;
}

}  // namespace keelson::nft
