// Lists of the store: from the cache, from etcd's history, and by pages.
#include "controlplane/storage/continue_token.h"
#include "controlplane/storage/convert.h"
#include "controlplane/storage/etcd_metrics.h"
#include "controlplane/storage/store_impl.h"
#include "lib/api/meta.h"

namespace keelson::storage {
namespace {

Error ListExpired() { return Error(Code::kGone, "The resourceVersion for the provided list is too old."); }

// The caller adds a token that continues with the present objects (InconsistentToken()).
Error ContinueExpired() {
  return Error(
      Code::kGone,
      "The provided continue parameter is too old to display a consistent list result. You can start "
      "a new list without the continue parameter, or use the continue token in this response to "
      "retrieve the remainder of the results. Continuing with the provided token results in an "
      "inconsistent list - objects that were created, modified, or deleted between the time the "
      "first chunk was returned and now may show up in the list.");
}

}  // namespace

Result<ListResult> Store::Impl::FromPage(WatchCache::Page page, const api::ResourceInfo& info,
                                         const ListRequest& request, const Limits& limits) {
  ListResult result;
  result.revision = page.revision;
  if (page.more && !page.items.empty()) {
    std::string_view last = page.items.back()->key();
    if (!request.ns.empty()) last.remove_prefix(request.ns.size() + 1);
    result.continue_token = Encode({page.revision, std::string(last) + '\0'});
    // With a selector the number of remaining matches is unknown.
    if (request.predicate.IsEverything()) result.remaining = page.left;
  }
  result.items = std::move(page.items);
  KEELSON_RETURN_IF_ERROR(ConvertAll(result.items, info, limits));
  return result;
}

// A list as of an exact revision, from etcd's history.
Result<ListResult> Store::Impl::ListAt(WatchCache& cache, const api::ResourceInfo& info,
                                       const ListRequest& request, int64_t revision, std::string start,
                                       bool continued, const Limits& limits) {
  std::string prefix(info.etcd_prefix);
  if (!request.ns.empty()) prefix += std::string(request.ns) + "/";
  etcd::RangeOptions at;
  at.end = etcd::PrefixEnd(prefix);
  at.revision = revision;
  at.limit = request.limit > 0 ? request.limit : 500;
  std::string next = prefix + start;
  WatchCache::Page page;
  page.revision = revision;
  StorageList list(info);
  while (true) {
    Result<etcd::RangeResult> range = Measured("list", info, [&] { return client->Range(next, at, limits); });
    if (!range && range.error().Is(Code::kGone)) return continued ? ContinueExpired() : ListExpired();
    if (!range) return range.error();
    list.fetched += range->kvs.size();
    size_t i = 0;
    for (; i < range->kvs.size(); ++i) {
      if (request.limit > 0 && static_cast<int64_t>(page.items.size()) == request.limit) break;
      const etcd::KeyValue& kv = range->kvs[i];
      std::string_view key = std::string_view(kv.key).substr(info.etcd_prefix.size());
      ObjectPtr object = cache.Get(key);
      if (!object || object->revision() != kv.mod_revision) {
        KEELSON_ASSIGN_OR_RETURN(object, decoder.Decode(cache.info(), key, kv));
      }
      if (object->Matches(request.predicate.labels, request.predicate.fields)) {
        page.items.push_back(std::move(object));
      }
    }
    list.evaluated += i;
    list.returned = page.items.size();
    page.left = range->count - static_cast<int64_t>(i);
    page.more = page.left > 0;
    bool full = request.limit > 0 && static_cast<int64_t>(page.items.size()) == request.limit;
    if (full || !range->more || range->kvs.empty()) break;
    next = range->kvs.back().key + '\0';
  }
  return FromPage(std::move(page), info, request, limits);
}

Result<> Store::Impl::CheckKept(const api::ResourceInfo& info, int64_t revision, const Limits& limits) {
  etcd::RangeOptions at;
  at.revision = revision;
  at.count_only = true;
  Result<etcd::RangeResult> range =
      Measured("list", info, [&] { return client->Range(info.etcd_prefix, at, limits); });
  if (range) return {};
  return range.error().Is(Code::kGone) ? ContinueExpired() : range.error();
}

Result<ListResult> Store::Impl::Continue(WatchCache& cache, const api::ResourceInfo& info,
                                         const ListRequest& request, const Limits& limits) {
  Result<ContinueToken> token = DecodeContinue(request.continue_token);
  if (!token) return Error(Code::kBadRequest, "invalid continue token: " + token.error().message());
  if (!request.resource_version.empty() && request.resource_version != "0") {
    return Error(Code::kBadRequest, "specifying resource version is not allowed when using continue");
  }
  std::string prefix = request.ns.empty() ? "" : std::string(request.ns) + "/";
  bool anything = token->revision < 0;
  if (anything) {
    KEELSON_RETURN_IF_ERROR(WaitUntilFresh(info, "", limits));
  } else {
    KEELSON_RETURN_IF_ERROR(gate.WaitUntilFresh(token->revision, limits));
  }
  KEELSON_RETURN_IF_ERROR(decoder.CheckList(info, request.ns));
  int64_t reached = gate.reached();
  if (anything) {
    return FromPage(cache.List(request.ns, prefix + token->start, request.predicate, request.limit, reached),
                    info, request, limits);
  }
  // While nothing has changed since the first page, the cache is that page's snapshot. It expires when etcd
  // compacts the revision, as clients expect.
  if (cache.last_change() <= token->revision) {
    WatchCache::Page page =
        cache.List(request.ns, prefix + token->start, request.predicate, request.limit, reached);
    if (page.revision == reached && cache.last_change() <= token->revision) {
      KEELSON_RETURN_IF_ERROR(CheckKept(info, token->revision, limits));
      page.revision = token->revision;
      return FromPage(std::move(page), info, request, limits);
    }
  }
  return ListAt(cache, info, request, token->revision, token->start, true, limits);
}

Result<ListResult> Store::Impl::One(WatchCache& cache, const api::ResourceInfo& info,
                                    const ListRequest& request, const Limits& limits) {
  ListResult result;
  std::string key = api::KeyOf(request.ns, request.name);
  ObjectPtr object;
  if (request.match == "Exact") {
    KEELSON_ASSIGN_OR_RETURN(result.revision, ParseRevision(request.resource_version));
    KEELSON_RETURN_IF_ERROR(gate.WaitUntilFresh(result.revision, limits));
    etcd::RangeOptions at;
    at.revision = result.revision;
    Result<etcd::RangeResult> range =
        Measured("get", info, [&] { return client->Range(std::string(info.etcd_prefix) + key, at, limits); });
    if (!range) return range.error().Is(Code::kGone) ? ListExpired() : range.error();
    if (!range->kvs.empty()) {
      KEELSON_ASSIGN_OR_RETURN(object, decoder.Decode(cache.info(), key, range->kvs[0]));
    }
  } else {
    KEELSON_RETURN_IF_ERROR(WaitUntilFresh(info, request.resource_version, limits));
    result.revision = gate.reached();
    object = cache.Get(key);
    if (!object) KEELSON_RETURN_IF_ERROR(decoder.CheckKey(std::string(info.etcd_prefix) + key));
    if (object) result.revision = std::max(result.revision, object->revision());
  }
  if (object && object->Matches(request.predicate.labels, request.predicate.fields)) {
    result.items.push_back(std::move(object));
  }
  KEELSON_RETURN_IF_ERROR(ConvertAll(result.items, info, limits));
  return result;
}

Result<ListResult> Store::List(const api::ResourceInfo& info, const ListRequest& request,
                               const Limits& limits) {
  KEELSON_ASSIGN_OR_RETURN(WatchCache * cache, impl_->CacheOf(info, limits));
  if (Result<int64_t> revision = ParseRevision(request.resource_version); !revision) {
    return revision.error().Wrap("invalid resource version");
  }
  if (!request.name.empty()) return impl_->One(*cache, info, request, limits);
  if (!request.continue_token.empty()) return impl_->Continue(*cache, info, request, limits);
  bool exact = request.match == "Exact";
  // Without resourceVersionMatch a paged list from a version means Exact.
  if (request.match.empty() && request.limit > 0 && !request.resource_version.empty() &&
      request.resource_version != "0") {
    exact = true;
  }
  if (exact) {
    KEELSON_ASSIGN_OR_RETURN(int64_t revision, ParseRevision(request.resource_version));
    KEELSON_RETURN_IF_ERROR(impl_->gate.WaitUntilFresh(revision, limits));
    return impl_->ListAt(*cache, info, request, revision, "", false, limits);
  }
  KEELSON_RETURN_IF_ERROR(impl_->WaitUntilFresh(info, request.resource_version, limits));
  // A list must not look complete when it is not. Checked once the caches are as fresh as the request asks for.
  KEELSON_RETURN_IF_ERROR(impl_->decoder.CheckList(info, request.ns));
  // At "0" the limit is ignored, as upstream does: such lists are to be cheap.
  int64_t limit = request.resource_version == "0" ? 0 : request.limit;
  return impl_->FromPage(cache->List(request.ns, "", request.predicate, limit, impl_->gate.reached()), info,
                         request, limits);
}

}  // namespace keelson::storage
