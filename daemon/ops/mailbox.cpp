#include "daemon/ops/mailbox.h"

#include <utility>

namespace bellhop {

// libuv's handle lasts until its close callback, and keeps the mailbox that long.
struct Mailbox::Handle {
  uv_async_t async;
  std::shared_ptr<Mailbox> mailbox;
  std::function<void()> closed;
};

Result<std::shared_ptr<Mailbox>> Mailbox::open(uv_loop_t* loop, std::function<void()> after) {
  auto handle = std::make_unique<Handle>();
  handle->async.data = handle.get();
  const int error = uv_async_init(loop, &handle->async, [](uv_async_t* async) {
    // A copy: a task may close the mailbox and drop what else holds it.
    const std::shared_ptr<Mailbox> mailbox = static_cast<Handle*>(async->data)->mailbox;
    mailbox->run_posted();
  });
  if (error != 0) return Error{std::string("cannot open a mailbox: ") + uv_strerror(error)};
  std::shared_ptr<Mailbox> mailbox(new Mailbox);
  mailbox->after_ = std::move(after);
  handle->mailbox = mailbox;
  mailbox->handle_ = handle.release();  // freed in the close callback
  return mailbox;
}

void Mailbox::post(std::function<void()> task) {
  const std::lock_guard<std::mutex> lock(mutex_);
  if (!open_) return;  // `task` is a parameter: it is destroyed after the lock is let go
  posted_.push_back(std::move(task));
  // Under the lock, so that close() cannot take the handle away meanwhile. One wake-up serves a batch.
  if (posted_.size() == 1) uv_async_send(&handle_->async);
}

void Mailbox::run_posted() {
  {
    const std::lock_guard<std::mutex> lock(mutex_);
    running_.swap(posted_);
  }
  for (std::function<void()>& task : running_) {
    if (closed_) break;
    task();
    task = nullptr;  // what it holds goes before the next one runs, as with a single call
  }
  running_.clear();
  if (!closed_ && after_) after_();
}

void Mailbox::close(std::function<void()> closed) {
  if (closed_) return;
  closed_ = true;
  Handle* handle = nullptr;
  std::vector<std::function<void()>> dropped;
  {
    const std::lock_guard<std::mutex> lock(mutex_);
    open_ = false;
    dropped.swap(posted_);
    handle = std::exchange(handle_, nullptr);
  }
  handle->closed = std::move(closed);
  uv_close(reinterpret_cast<uv_handle_t*>(&handle->async), [](uv_handle_t* raw) {
    const std::unique_ptr<Handle> owned(static_cast<Handle*>(raw->data));
    if (owned->closed) owned->closed();
  });
}

}  // namespace bellhop
