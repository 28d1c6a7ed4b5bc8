#include "lib/event/loop.h"

#include <pthread.h>
#include <signal.h>

#include <algorithm>
#include <atomic>
#include <functional>
#include <iterator>
#include <thread>
#include <vector>

#include <boost/asio/io_context.hpp>
#include <boost/asio/posix/stream_descriptor.hpp>
#include <boost/asio/post.hpp>
#include <boost/asio/steady_timer.hpp>

#include "lib/base/mutex.h"

namespace keelson::event {

namespace asio = boost::asio;

struct Loop::Impl {
  asio::io_context context{1};
  asio::executor_work_guard<asio::io_context::executor_type> work{context.get_executor()};
  std::thread thread;
  std::thread::id id;
  std::atomic<bool> ends_by_itself = false;
};

namespace {

using ImplPtr = std::shared_ptr<Loop::Impl>;

// Threads that are not joined yet.
class Threads {
 public:
  static Threads& Get() {
    static auto* threads = new Threads;  // outlives every loop
    return *threads;
  }
  void Add(ImplPtr impl) {
    MutexLock lock(mutex_);
    running_.push_back(std::move(impl));
  }
  // Takes out the threads for which `which` is true.
  template <typename Which>
  std::vector<ImplPtr> Take(Which which) {
    MutexLock lock(mutex_);
    auto taken = std::stable_partition(running_.begin(), running_.end(), std::not_fn(which));
    std::vector<ImplPtr> out(std::make_move_iterator(taken), std::make_move_iterator(running_.end()));
    running_.erase(taken, running_.end());
    return out;
  }

 private:
  Mutex mutex_;
  std::vector<ImplPtr> running_ KEELSON_GUARDED_BY(mutex_);
};

void Join(const std::vector<ImplPtr>& loops) {
  for (const ImplPtr& loop : loops) loop->thread.join();
}

}  // namespace

std::shared_ptr<Loop> Loop::Create(const std::string& thread_name) {
  Join(Threads::Get().Take(
      [](const ImplPtr& loop) { return loop->ends_by_itself && loop->id != std::this_thread::get_id(); }));
  auto impl = std::make_shared<Impl>();
  // New threads inherit the signal mask, so no signal handler and no SIGPIPE ever runs on this thread.
  sigset_t all, old;
  sigfillset(&all);
  pthread_sigmask(SIG_SETMASK, &all, &old);
  impl->thread = std::thread([impl, name = thread_name.substr(0, 15)] {
    pthread_setname_np(pthread_self(), name.c_str());
    impl->context.run();
  });
  pthread_sigmask(SIG_SETMASK, &old, nullptr);
  impl->id = impl->thread.get_id();
  Threads::Get().Add(impl);
  return std::shared_ptr<Loop>(new Loop(std::move(impl)));
}

std::shared_ptr<Loop> Loop::Shared() {
  static Mutex mutex;
  static std::weak_ptr<Loop> shared;
  MutexLock lock(mutex);
  std::shared_ptr<Loop> loop = shared.lock();
  if (!loop) shared = loop = Create("io");
  return loop;
}

Loop::~Loop() {
  impl_->context.stop();
  // The last owner may be a task on this very loop.
  if (OnLoopThread()) {
    impl_->ends_by_itself = true;
  } else {
    Join(Threads::Get().Take([&](const ImplPtr& loop) { return loop == impl_; }));
  }
}

LoopsOfProcess::~LoopsOfProcess() {
  std::vector<ImplPtr> loops = Threads::Get().Take([](const ImplPtr&) { return true; });
  for (const ImplPtr& loop : loops) {
    asio::post(loop->context, [loop = loop.get()] { loop->context.stop(); });
  }
  Join(loops);
}

void Loop::Post(std::function<void()> task) { asio::post(impl_->context, std::move(task)); }
bool Loop::OnLoopThread() const { return std::this_thread::get_id() == impl_->id; }

struct Timer::State {
  explicit State(asio::io_context& context) : timer(context) {}
  asio::steady_timer timer;
  std::function<void()> callback;
  uint64_t generation = 0;
};

Timer::Timer(Loop& loop) : state_(std::make_shared<State>(loop.impl().context)) {}
Timer::~Timer() { Cancel(); }

void Timer::Start(std::chrono::nanoseconds after, std::function<void()> callback) {
  uint64_t generation = ++state_->generation;
  state_->callback = std::move(callback);
  state_->timer.expires_after(after);
  state_->timer.async_wait([state = state_, generation](const boost::system::error_code&) {
    if (state->generation != generation) return;
    ++state->generation;
    auto run = std::move(state->callback);
    state->callback = nullptr;
    run();
  });
}

void Timer::Cancel() {
  ++state_->generation;
  state_->callback = nullptr;
  state_->timer.cancel();
}

struct FdWatch::State {
  struct Side {
    std::function<void()> callback;
    uint64_t generation = 0;
  };
  State(asio::io_context& context, int fd) : descriptor(context, fd) {}
  asio::posix::stream_descriptor descriptor;
  Side read, write;

  static void Await(const std::shared_ptr<State>& state, bool for_read, std::function<void()> callback) {
    Side& side = for_read ? state->read : state->write;
    uint64_t generation = ++side.generation;
    side.callback = std::move(callback);
    auto kind =
        for_read ? asio::posix::stream_descriptor::wait_read : asio::posix::stream_descriptor::wait_write;
    state->descriptor.async_wait(kind, [state, for_read, generation](const boost::system::error_code&) {
      Side& mine = for_read ? state->read : state->write;
      if (mine.generation != generation) return;
      ++mine.generation;
      auto run = std::move(mine.callback);
      mine.callback = nullptr;
      run();
    });
  }
};

FdWatch::FdWatch(Loop& loop, int fd) : state_(std::make_shared<State>(loop.impl().context, fd)) {}

FdWatch::~FdWatch() {
  Cancel();
  state_->descriptor.release();
}

void FdWatch::AwaitReadable(std::function<void()> callback) {
  State::Await(state_, true, std::move(callback));
}
void FdWatch::AwaitWritable(std::function<void()> callback) {
  State::Await(state_, false, std::move(callback));
}

void FdWatch::Cancel() {
  for (auto* side : {&state_->read, &state_->write}) {
    ++side->generation;
    side->callback = nullptr;
  }
  boost::system::error_code ignored;
  state_->descriptor.cancel(ignored);
}

}  // namespace keelson::event
