#include "lib/nft/decode_internal.h"

#include <libnftnl/chain.h>
#include <libnftnl/rule.h>
#include <libnftnl/set.h>
#include <libnftnl/udata.h>
#include <linux/netfilter/nf_tables.h>

#include <memory>

#include "lib/nft/encode_expr_internal.h"
#include "lib/nft/encode_internal.h"

namespace keelson::nft {
namespace {

template <auto Free>
struct Deleter {
  template <typename T>
  void operator()(T* object) const {
    Free(object);
  }
};

std::string Text(const char* text) { return text ? text : ""; }

static_assert(NFTNL_UDATA_RULE_COMMENT == 0 && NFTNL_UDATA_SET_ELEM_COMMENT == 0);

// For rules and elements.
int KeepComment(const nftnl_udata* attribute, void* arg) {
  if (nftnl_udata_type(attribute) == NFTNL_UDATA_RULE_COMMENT && nftnl_udata_len(attribute) > 0) {
    static_cast<std::string*>(arg)->assign(static_cast<const char*>(nftnl_udata_get(attribute)),
                                           nftnl_udata_len(attribute) - 1u);
  }
  return 0;
}

int KeepElement(nftnl_set_elem* element, void* arg) {
  auto bytes = [&](uint16_t attribute) {
    uint32_t length = 0;
    const void* data =
        nftnl_set_elem_is_set(element, attribute) ? nftnl_set_elem_get(element, attribute, &length) : nullptr;
    return data ? std::string(static_cast<const char*>(data), length) : std::string();
  };
  Element out{.key = bytes(NFTNL_SET_ELEM_KEY), .key_end = bytes(NFTNL_SET_ELEM_KEY_END)};
  if (nftnl_set_elem_is_set(element, NFTNL_SET_ELEM_VERDICT)) {
    auto code = static_cast<int>(nftnl_set_elem_get_u32(element, NFTNL_SET_ELEM_VERDICT));
    const std::string chain = bytes(NFTNL_SET_ELEM_CHAIN);
    out.verdict = Verdict{VerdictKind(code), chain.substr(0, chain.find('\0'))};
  } else {
    out.data = bytes(NFTNL_SET_ELEM_DATA);
  }
  if (std::string userdata = bytes(NFTNL_SET_ELEM_USERDATA); !userdata.empty()) {
    nftnl_udata_parse(userdata.data(), static_cast<uint32_t>(userdata.size()), KeepComment, &out.comment);
  }
  if (nftnl_set_elem_is_set(element, NFTNL_SET_ELEM_EXPIRATION)) {
    out.lifetime = std::chrono::milliseconds(nftnl_set_elem_get_u64(element, NFTNL_SET_ELEM_EXPIRATION));
  }
  auto* into = static_cast<Ruleset::SetContents*>(arg);
  std::string key = out.key;
  into->elements.insert_or_assign(std::move(key), std::move(out));
  return 0;
}

}  // namespace

std::string CommentOf(const nftnl_rule* rule) {
  std::string out;
  uint32_t length = 0;
  if (const void* data = nftnl_rule_get_data(rule, NFTNL_RULE_USERDATA, &length)) {
    nftnl_udata_parse(data, length, KeepComment, &out);
  }
  return out;
}

void DecodeChain(const nlmsghdr* header, Ruleset& into) {
  std::unique_ptr<nftnl_chain, Deleter<nftnl_chain_free>> chain(nftnl_chain_alloc());
  if (nftnl_chain_nlmsg_parse(header, chain.get()) < 0) return;
  if (Text(nftnl_chain_get_str(chain.get(), NFTNL_CHAIN_TABLE)) != into.table.name) return;
  Chain out{.name = Text(nftnl_chain_get_str(chain.get(), NFTNL_CHAIN_NAME))};
  if (nftnl_chain_is_set(chain.get(), NFTNL_CHAIN_HOOKNUM)) {
    bool nat = Text(nftnl_chain_get_str(chain.get(), NFTNL_CHAIN_TYPE)) == "nat";
    out.hook = Hook{.type = nat ? HookType::kNat : HookType::kFilter,
                    .point = static_cast<HookPoint>(nftnl_chain_get_u32(chain.get(), NFTNL_CHAIN_HOOKNUM)),
                    .priority = nftnl_chain_get_s32(chain.get(), NFTNL_CHAIN_PRIO)};
  }
  std::string name = out.name;
  into.chains[name].chain = std::move(out);
}

void DecodeRule(const nlmsghdr* header, Ruleset& into) {
  std::unique_ptr<nftnl_rule, Deleter<nftnl_rule_free>> rule(nftnl_rule_alloc());
  if (nftnl_rule_nlmsg_parse(header, rule.get()) < 0) return;
  if (Text(nftnl_rule_get_str(rule.get(), NFTNL_RULE_TABLE)) != into.table.name) return;
  std::string chain = Text(nftnl_rule_get_str(rule.get(), NFTNL_RULE_CHAIN));
  std::string comment = CommentOf(rule.get());
  Rule out(chain);
  out.set_found_comment(comment.empty() ? "none" : comment);
  into.chains[chain].rules.push_back(std::move(out));
}

void DecodeSet(const nlmsghdr* header, Ruleset& into) {
  std::unique_ptr<nftnl_set, Deleter<nftnl_set_free>> set(nftnl_set_alloc());
  if (nftnl_set_nlmsg_parse(header, set.get()) < 0) return;
  if (Text(nftnl_set_get_str(set.get(), NFTNL_SET_TABLE)) != into.table.name) return;
  uint32_t flags = nftnl_set_get_u32(set.get(), NFTNL_SET_FLAGS);
  Set out{.name = Text(nftnl_set_get_str(set.get(), NFTNL_SET_NAME)),
          .key = TypesOf(nftnl_set_get_u32(set.get(), NFTNL_SET_KEY_TYPE))};
  out.interval = flags & NFT_SET_INTERVAL;
  out.dynamic = flags & NFT_SET_EVAL;
  if (flags & NFT_SET_MAP) {
    uint32_t type = nftnl_set_get_u32(set.get(), NFTNL_SET_DATA_TYPE);
    out.verdicts = type == NFT_DATA_VERDICT;
    if (!out.verdicts) out.data = TypesOf(type);
  }
  if (nftnl_set_is_set(set.get(), NFTNL_SET_TIMEOUT)) {
    out.timeout = std::chrono::milliseconds(nftnl_set_get_u64(set.get(), NFTNL_SET_TIMEOUT));
  }
  std::string name = out.name;
  into.sets[name].set = std::move(out);
}

void DecodeElements(const nlmsghdr* header, Ruleset::SetContents& into) {
  std::unique_ptr<nftnl_set, Deleter<nftnl_set_free>> part(nftnl_set_alloc());
  if (nftnl_set_elems_nlmsg_parse(header, part.get()) < 0) return;
  nftnl_set_elem_foreach(part.get(), KeepElement, &into);
}

}  // namespace keelson::nft
